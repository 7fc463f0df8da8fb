//! Whether a result solves its problem. What is compared is the problem itself: a residual
//! against what was given, a sum in double precision, an order. No check runs the algorithm
//! again whose result it judges. docs/verification.md says for each workload what is checked
//! and what an undetected error could look like.
//!
//! * [`rounding`] has what a precision may lose, and [`checked`] counts what was compared.
//! * [`sum`] compares a sum of products with the one in double precision, and the places of
//!   numbers that are infinite or none (NaN) with what IEEE 754 makes of the given ones.
//! * [`product`] checks products of matrices with random vectors of `weights`, and with
//!   [`places`] where numbers are not finite. `accuracy` looks at `samples`.
//! * [`factors`] has the residual of an LU factorisation and its growth.
//! * [`transform`] checks Fourier transforms with random vectors, of which `fourier` has the
//!   transforms in double precision.
//! * [`sorted`] checks an order, and that nothing was lost, by a hash.

pub(crate) mod accuracy;
pub mod checked;
pub mod factors;
mod fourier;
pub mod overflow;
pub mod places;
pub mod product;
pub mod rounding;
mod samples;
pub mod sorted;
pub mod sum;
pub mod transform;
mod twofold;
pub(crate) mod weights;

#[cfg(test)]
pub(crate) mod tests;

pub use checked::{Checked, Compared};
pub use rounding::Rounding;
pub use sum::Sum;

use half::{bf16, f16};

use crate::codelet::Element;
use crate::parallel;

/// Numbers that one thread reads or checks at a time: 0.2 ms of work or more.
const PIECE: usize = 1 << 16;

/// Numbers as they are stored in memory.
pub fn numbers(bytes: &[u8], element: impl Into<Element>) -> Vec<f64> {
    match element.into() {
        Element::F16 => doubles(bytes.as_chunks().0, |of| f16::from_ne_bytes(of).into()),
        Element::Bf16 => doubles(bytes.as_chunks().0, |of| bf16::from_ne_bytes(of).into()),
        Element::F32 => doubles(bytes.as_chunks().0, |of| f32::from_ne_bytes(of).into()),
        Element::F64 => doubles(bytes.as_chunks().0, f64::from_ne_bytes),
    }
}

fn doubles<const N: usize>(of: &[[u8; N]], read: impl Fn([u8; N]) -> f64 + Sync) -> Vec<f64> {
    let mut doubles = vec![0.0; of.len()];
    parallel::pieces(&mut doubles, PIECE, |piece, to| {
        let from = &of[piece * PIECE..];
        to.iter_mut()
            .zip(from)
            .for_each(|(to, from)| *to = read(*from));
    });
    doubles
}

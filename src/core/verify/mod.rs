//! Whether a result solves its problem. What is compared is the problem itself: a residual
//! against what was given, a sum in double precision, an order. No check runs the algorithm
//! again whose result it judges. docs/verification.md says for each workload what is checked
//! and what an undetected error could look like.
//!
//! * [`Rounding`] has what a precision may lose, and [`checked`] counts what was compared.
//! * [`Sum`] compares a sum of products with the one in double precision, and the places of
//!   numbers that are infinite or none (NaN) with what IEEE 754 makes of the given ones.
//! * [`product`] checks products of matrices with random vectors, and with
//!   [`places`] where numbers are not finite. `accuracy` looks at samples.
//! * [`factors`] has the residual of an LU factorisation and its growth.
//! * [`transform`] checks Fourier transforms with random vectors, whose transforms
//!   it has in double precision.
//! * [`sorted`] checks an order, and that nothing was lost, by a hash.

pub(crate) mod accuracy;
pub mod checked;
pub mod factors;
pub mod overflow;
pub mod places;
pub mod product;
pub mod sorted;
pub mod transform;

#[cfg(test)]
pub(crate) mod tests;

pub use checked::{Checked, Compared};

use half::{bf16, f16};

use crate::codelet::{Element, Precision, ProductPrecision};
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

/// The limits of a precision's numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rounding {
    /// The greatest relative error of an operation: half the distance from 1 to the next
    /// number.
    pub unit: f64,
    /// The greatest absolute error of an operation whose result is near zero: the smallest
    /// normal number, as devices may replace smaller ones by zero.
    pub least: f64,
    /// The greatest finite number.
    pub most: f64,
    /// The greatest relative error of a product of two numbers whose factors are rounded first;
    /// 0 if they are not.
    pub product: f64,
}

impl From<Precision> for Rounding {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::F32 => Self {
                unit: f64::from(f32::EPSILON) / 2.0,
                least: f32::MIN_POSITIVE.into(),
                most: f32::MAX.into(),
                product: 0.0,
            },
            Precision::F64 => Self {
                unit: f64::EPSILON / 2.0,
                least: f64::MIN_POSITIVE,
                most: f64::MAX,
                product: 0.0,
            },
        }
    }
}

impl From<ProductPrecision> for Rounding {
    fn from(precision: ProductPrecision) -> Self {
        Self {
            product: match precision {
                ProductPrecision::Single(format) => format.product_error(),
                ProductPrecision::Double => 0.0,
            },
            ..Self::from(precision.sums())
        }
    }
}

/// A sum of products in double precision.
///
/// The error of a sum of n products, in any order and with or without fused operations, is
/// at most `n u` of the sum of their magnitudes (Higham, "Accuracy and Stability of
/// Numerical Algorithms", section 3.1), and each product near zero may lose the smallest
/// normal number. Twice that is allowed, and what rounding the factors of each product before
/// it may change.
///
/// Numbers that are infinite or none count separately, so that the places of such results are
/// compared: IEEE 754 decides by these terms alone what the sum is, whatever its order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    value: f64,
    magnitude: f64,
    /// The sum of the products of which a factor is not finite; 0 if there are none.
    special: f64,
    terms: u64,
}

impl Sum {
    /// Adds a product.
    pub fn add(&mut self, a: f64, b: f64) {
        let product = a * b;
        self.terms += 1;
        if a.is_finite() && b.is_finite() {
            self.value += product;
            self.magnitude += product.abs();
        } else {
            self.special += product;
        }
    }

    /// The error of a result, as a multiple of what is allowed; infinite if it is finite and
    /// should not be, or the reverse.
    pub fn error(&self, found: f64, rounding: Rounding) -> f64 {
        let terms = self.terms as f64;
        let allowed = terms * (2.0 * rounding.unit * self.magnitude + rounding.least)
            + rounding.product * self.magnitude;
        // What is finite may become infinite in between, and then none.
        let overflows = self.magnitude + allowed > rounding.most;
        let is_right = if self.special.is_nan() {
            found.is_nan()
        } else if self.special.is_infinite() {
            found == self.special || (overflows && found.is_nan())
        } else if !found.is_finite() {
            overflows
        } else if !self.magnitude.is_finite() {
            // Double precision does not tell more.
            true
        } else {
            let difference = (found - self.value).abs();
            return if difference == 0.0 {
                0.0
            } else {
                difference / allowed
            };
        };
        if is_right { 0.0 } else { f64::INFINITY }
    }
}

/// The sum of finite numbers, of which every addition's rounding error is added, too.
///
/// Source: Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher
/// Summen", ZAMM 1974, algorithm IV.
pub fn compensated(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0);
    for number in numbers {
        let next = sum + number;
        lost += match sum.abs() >= number.abs() {
            true => (sum - next) + number,
            false => (number - next) + sum,
        };
        sum = next;
    }
    sum + lost
}

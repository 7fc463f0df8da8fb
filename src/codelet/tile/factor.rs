//! Products of matrices whose factors are stored in another format than their sums: they are
//! converted a panel at a time, and the library multiplies the panels.

use half::{bf16, f16};

use super::matrix::{Matrix, Number, for_each_part};
use crate::stored::{Stored, Tf32};

/// A number of the factors of a product.
pub(crate) trait Factor: Copy + Send + Sync {
    /// A number of its sums.
    type Sum: Number;

    /// `C = beta C + alpha A B`, or `A B^T`, in parts for threads.
    ///
    /// # Safety
    /// That of [`Matrix::add_product`].
    unsafe fn add_product_on(
        c: Matrix<Self::Sum>,
        threads: usize,
        size: (usize, usize, usize),
        of: (Matrix<Self>, Matrix<Self>, bool),
        factors: (Self::Sum, Self::Sum),
    );
}

/// A number of the factors and the result of a product, whose sums are singles.
pub(crate) trait Product: Factor<Sum = f32> {
    /// `C = A B`, or `A B^T`, in parts for threads. Nothing of C is read.
    ///
    /// # Safety
    /// That of [`Matrix::add_product`].
    unsafe fn multiply_on(
        c: Matrix<Self>,
        threads: usize,
        size: (usize, usize, usize),
        of: (Matrix<Self>, Matrix<Self>, bool),
    );
}

macro_rules! as_its_sum {
    ($type:ty) => {
        impl Factor for $type {
            type Sum = Self;

            unsafe fn add_product_on(
                c: Matrix<Self>,
                threads: usize,
                size: (usize, usize, usize),
                of: (Matrix<Self>, Matrix<Self>, bool),
                factors: (Self, Self),
            ) {
                // SAFETY: the caller's contract.
                unsafe { c.add_product_on(threads, size, of, factors) }
            }
        }
    };
}

as_its_sum!(f32);
as_its_sum!(f64);

impl Product for f32 {
    unsafe fn multiply_on(
        c: Matrix<Self>,
        threads: usize,
        size: (usize, usize, usize),
        of: (Matrix<Self>, Matrix<Self>, bool),
    ) {
        // SAFETY: the caller's contract.
        unsafe { c.add_product_on(threads, size, of, (1.0, 0.0)) }
    }
}

macro_rules! converted {
    ($type:ty) => {
        impl Factor for $type {
            type Sum = f32;

            unsafe fn add_product_on(
                c: Matrix<f32>,
                threads: usize,
                size: (usize, usize, usize),
                (a, b, transposed): (Matrix<Self>, Matrix<Self>, bool),
                factors: (f32, f32),
            ) {
                for_each_part(threads, size, |down, right| {
                    let part = (down.len(), right.len(), size.2);
                    let b = b.beginning_at(right.start, transposed);
                    let of = (a.from(down.start, 0), b, transposed);
                    // SAFETY: the caller's contract; parts are disjoint.
                    unsafe { by_panels(c.from(down.start, right.start), part, of, factors) }
                });
            }
        }

        impl Product for $type {
            unsafe fn multiply_on(
                c: Matrix<Self>,
                threads: usize,
                size: (usize, usize, usize),
                (a, b, transposed): (Matrix<Self>, Matrix<Self>, bool),
            ) {
                for_each_part(threads, size, |down, right| {
                    let part = (down.len(), right.len(), size.2);
                    let b = b.beginning_at(right.start, transposed);
                    let of = (a.from(down.start, 0), b, transposed);
                    let width = right.len();
                    let mut sums = vec![0.0; down.len() * width];
                    // SAFETY: the caller's contract; the sums have the part's size.
                    unsafe {
                        by_panels(Matrix::new(sums.as_mut_ptr(), width), part, of, (1.0, 0.0));
                    }
                    for (row, sums) in down.zip(sums.chunks_exact(width.max(1))) {
                        // SAFETY: the caller's contract; parts are disjoint.
                        let to = unsafe { c.row(row, right.clone()) };
                        Self::from_values(sums, to);
                    }
                });
            }
        }
    };
}

converted!(f16);
converted!(bf16);
converted!(Tf32);

/// The depth of a panel: its conversion takes little of the time of its product with as many
/// rows or columns, and C is read and written once a panel.
const PANEL: usize = 512;

/// `C = beta C + alpha A B`, or `A B^T`.
///
/// # Safety
/// That of [`Matrix::add_product`].
unsafe fn by_panels<S: Stored>(
    c: Matrix<f32>,
    (rows, columns, depth): (usize, usize, usize),
    (a, b, transposed): (Matrix<S>, Matrix<S>, bool),
    (alpha, beta): (f32, f32),
) {
    let most = depth.min(PANEL);
    let mut of_a = vec![0.0; rows * most];
    let mut of_b = vec![0.0; columns * most];
    // A product without depth is one panel without depth, which gives C its factor.
    for begin in (0..depth.max(1)).step_by(PANEL) {
        let at = begin..(begin + PANEL).min(depth);
        let deep = at.len();
        // SAFETY: the caller's contract; the panels hold what is converted.
        unsafe {
            let from = a.from(0, at.start);
            let a = convert(from, (rows, deep), &mut of_a);
            let (from, size) = match transposed {
                true => (b.from(0, at.start), (columns, deep)),
                false => (b.from(at.start, 0), (deep, columns)),
            };
            let b = convert(from, size, &mut of_b);
            let beta = if begin == 0 { beta } else { 1.0 };
            c.add_product((rows, columns, deep), a, b, transposed, (alpha, beta));
        }
    }
}

/// Converts a matrix to factors without gaps.
///
/// # Safety
/// The matrix has these rows and columns, and nobody writes them now.
unsafe fn convert<S: Stored>(
    from: Matrix<S>,
    (rows, columns): (usize, usize),
    to: &mut [f32],
) -> Matrix<f32> {
    for (row, to) in (0..rows).zip(to.chunks_exact_mut(columns.max(1))) {
        // SAFETY: the caller's contract.
        let from = unsafe { from.part_of_row(row, columns) };
        S::to_factors(from, to);
    }
    Matrix::new(to.as_mut_ptr(), columns)
}

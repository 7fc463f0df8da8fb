//! Matrices in memory, and their product on one thread.

use std::ops::{Div, Mul, Range, Sub};

use crate::codelet::host::{Arguments, FromValue};

/// A number of a tile: `f32` or `f64`.
pub(in crate::codelet) trait Number:
    FromValue
    + Copy
    + Default
    + PartialOrd
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
    const ONE: Self;
    const MINUS_ONE: Self;

    fn sqrt(self) -> Self;

    fn abs(self) -> Self;

    fn is_finite(self) -> bool;

    /// `C = beta C + alpha A B` of `size.0 x size.1` and `size.1 x size.2` matrices.
    /// Each matrix has its first number, and its strides from row to row and from
    /// column to column. C is not read if beta is 0.
    ///
    /// # Safety
    /// The memory holds the matrices, and C overlaps neither of the others.
    unsafe fn gemm(
        size: (usize, usize, usize),
        alpha: Self,
        a: (*const Self, isize, isize),
        b: (*const Self, isize, isize),
        beta: Self,
        c: (*mut Self, isize, isize),
    );
}

macro_rules! number {
    ($type:ty, $gemm:path) => {
        impl Number for $type {
            const ONE: Self = 1.0;
            const MINUS_ONE: Self = -1.0;

            fn sqrt(self) -> Self {
                self.sqrt()
            }

            fn abs(self) -> Self {
                self.abs()
            }

            fn is_finite(self) -> bool {
                self.is_finite()
            }

            unsafe fn gemm(
                (m, k, n): (usize, usize, usize),
                alpha: Self,
                a: (*const Self, isize, isize),
                b: (*const Self, isize, isize),
                beta: Self,
                c: (*mut Self, isize, isize),
            ) {
                // SAFETY: the caller's contract.
                unsafe {
                    $gemm(
                        m, k, n, alpha, a.0, a.1, a.2, b.0, b.1, b.2, beta, c.0, c.1, c.2,
                    )
                }
            }
        }
    };
}

number!(f32, matrixmultiply::sgemm);
number!(f64, matrixmultiply::dgemm);

/// A matrix stored by rows, `stride` numbers apart.
#[derive(Clone, Copy)]
pub(in crate::codelet) struct Matrix<T> {
    first: *mut T,
    stride: usize,
}

impl<T: Number> Matrix<T> {
    /// The matrix of a memory, with this many numbers from one row to the next.
    pub(in crate::codelet) fn new(first: *mut T, stride: usize) -> Self {
        Self { first, stride }
    }

    /// A part of a row.
    ///
    /// # Safety
    /// The matrix has the numbers, and nobody else uses them now.
    pub(in crate::codelet) unsafe fn row<'a>(
        self,
        row: usize,
        columns: Range<usize>,
    ) -> &'a mut [T] {
        let first = self.from(row, columns.start).first;
        // SAFETY: the caller's contract.
        unsafe { std::slice::from_raw_parts_mut(first, columns.len()) }
    }

    /// The matrix in argument `memory`, with its stride and its first number in the
    /// arguments `stride` and `first`.
    ///
    /// # Safety
    /// The memory has the numbers before the first.
    pub(in crate::codelet) unsafe fn of(
        args: &Arguments,
        memory: usize,
        stride: usize,
        first: usize,
    ) -> Self {
        Self {
            // SAFETY: the caller's contract.
            first: unsafe { args.memory::<T>(memory).add(args.u64(first)) },
            stride: args.u32(stride),
        }
    }

    /// The part from this row and column on. An empty part may begin after the
    /// memory's end.
    pub(in crate::codelet) fn from(self, row: usize, column: usize) -> Self {
        Self {
            first: self.first.wrapping_add(row * self.stride + column),
            ..self
        }
    }

    /// # Safety
    /// The matrix has the number, and nobody writes it now.
    pub(in crate::codelet) unsafe fn get(self, row: usize, column: usize) -> T {
        // SAFETY: the caller's contract.
        unsafe { self.first.add(row * self.stride + column).read() }
    }

    /// # Safety
    /// The matrix has the number, and nobody else uses it now.
    pub(in crate::codelet) unsafe fn set(self, row: usize, column: usize, number: T) {
        // SAFETY: the caller's contract.
        unsafe { self.first.add(row * self.stride + column).write(number) }
    }

    /// `self = beta self + alpha A B`, or `A B^T`, where self has `rows` rows and
    /// `columns` columns.
    ///
    /// # Safety
    /// The matrices have these sizes, only this call uses those of `self`, and they
    /// overlap no number of the others.
    pub(in crate::codelet) unsafe fn add_product(
        self,
        (rows, columns, depth): (usize, usize, usize),
        a: Self,
        b: Self,
        transposed: bool,
        (alpha, beta): (T, T),
    ) {
        let across = |matrix: &Self| (matrix.first.cast_const(), matrix.stride as isize, 1);
        let b = match transposed {
            true => (b.first.cast_const(), 1, b.stride as isize),
            false => across(&b),
        };
        let c = (self.first, self.stride as isize, 1);
        // SAFETY: the caller's contract.
        unsafe { T::gemm((rows, depth, columns), alpha, across(&a), b, beta, c) }
    }
}

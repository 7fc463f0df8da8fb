//! Matrices in memory, and their product, which a library computes, or loops (`plain`) without
//! the crate's feature `dense`.

use std::ops::{Add, Div, Mul, Range, Sub};

#[cfg(feature = "dense")]
use gemm_common::Parallelism;

#[cfg(not(feature = "dense"))]
use super::plain::product;
use crate::host::{Arguments, FromValue, for_each_piece, piece};

/// A number of a tile: `f32` or `f64`.
pub(crate) trait Number:
    FromValue
    + Copy
    + Default
    + Send
    + Sync
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
    /// An unsigned number of as many bits.
    type Bits: Copy + Default + Ord + Send;

    const ONE: Self;
    const MINUS_ONE: Self;

    fn sqrt(self) -> Self;

    fn abs(self) -> Self;

    fn is_finite(self) -> bool;

    /// The bits of its absolute value: they ascend with it, and those of what is no number
    /// are the greatest.
    fn size_bits(self) -> Self::Bits;

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
    ($type:ty, $bits:ty, $product:path) => {
        impl Number for $type {
            type Bits = $bits;

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

            #[inline(always)]
            fn size_bits(self) -> $bits {
                self.abs().to_bits()
            }

            #[cfg(feature = "dense")]
            unsafe fn gemm(
                (m, k, n): (usize, usize, usize),
                alpha: Self,
                a: (*const Self, isize, isize),
                b: (*const Self, isize, isize),
                beta: Self,
                c: (*mut Self, isize, isize),
            ) {
                // The library is fastest with C by columns: C^T = B^T A^T. Its factors are
                // named the other way round.
                // SAFETY: the caller's contract.
                unsafe {
                    $product()(
                        n,
                        m,
                        k,
                        c.0,
                        c.1,
                        c.2,
                        beta != 0.0,
                        b.0,
                        b.1,
                        b.2,
                        a.0,
                        a.1,
                        a.2,
                        beta,
                        alpha,
                        false,
                        false,
                        false,
                        Parallelism::None,
                    )
                }
            }

            #[cfg(not(feature = "dense"))]
            unsafe fn gemm(
                size: (usize, usize, usize),
                alpha: Self,
                a: (*const Self, isize, isize),
                b: (*const Self, isize, isize),
                beta: Self,
                c: (*mut Self, isize, isize),
            ) {
                // SAFETY: the caller's contract.
                unsafe { product(size, alpha, a, b, beta, c) }
            }
        }
    };
}

number!(f32, u32, gemm_f32::gemm::f32::get_gemm_fn);
number!(f64, u64, gemm_f64::gemm::f64::get_gemm_fn);

/// A matrix stored by rows, `stride` numbers apart.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<T> {
    first: *mut T,
    stride: usize,
}

// SAFETY: only unsafe functions use the pointer, and their callers see to it that threads
// write different numbers.
unsafe impl<T: Send> Send for Matrix<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Matrix<T> {}

/// Pieces of a product for each thread: a thread that is late delays the others less, but
/// each piece packs its operands.
const PIECES: usize = 2;

/// Least operations of a piece, some tens of microseconds: dividing costs a few.
const LEAST: usize = 4_000_000;

/// The depth as which a product of less depth counts: the matrix that it changes is then read
/// and written more slowly than it is computed.
const SHALLOW: usize = 64;

/// Rows and columns of pieces are multiples of this, as registers hold such blocks.
const GRAIN: usize = 32;

/// Pieces in which so many operations are computed on so many threads.
pub(crate) fn pieces(threads: usize, operations: usize) -> usize {
    match threads {
        0 | 1 => 1,
        _ => (PIECES * threads).min(operations / LEAST).max(1),
    }
}

/// Calls `act` with the rows and columns of each piece of a product of this size: pieces for
/// threads that are as square as possible.
pub(crate) fn for_each_part(
    threads: usize,
    (rows, columns, depth): (usize, usize, usize),
    act: impl Fn(Range<usize>, Range<usize>) + Sync,
) {
    let operations = (2 * rows * columns).saturating_mul(depth.max(SHALLOW));
    let count = pieces(threads, operations);
    let across = (1..=count)
        .filter(|across| count.is_multiple_of(*across))
        .min_by_key(|across| (rows * across / count).abs_diff(columns / across))
        .unwrap_or(1);
    for_each_piece(threads, count, |number| {
        act(
            piece(rows, GRAIN, number / across, count / across),
            piece(columns, GRAIN, number % across, across),
        );
    });
}

impl<T: Copy> Matrix<T> {
    /// The matrix of a memory, with this many numbers from one row to the next.
    pub(crate) fn new(first: *mut T, stride: usize) -> Self {
        Self { first, stride }
    }

    /// A part of a row.
    ///
    /// # Safety
    /// The matrix has the numbers, and nobody else uses them now.
    #[inline(always)]
    pub(crate) unsafe fn row<'a>(self, row: usize, columns: Range<usize>) -> &'a mut [T] {
        let first = self.from(row, columns.start).first;
        // SAFETY: the caller's contract.
        unsafe { std::slice::from_raw_parts_mut(first, columns.len()) }
    }

    /// The first numbers of a row, to be read.
    ///
    /// # Safety
    /// The matrix has the numbers, and nobody writes them now.
    pub(crate) unsafe fn part_of_row<'a>(self, row: usize, columns: usize) -> &'a [T] {
        let first = self.from(row, 0).first.cast_const();
        // SAFETY: the caller's contract.
        unsafe { std::slice::from_raw_parts(first, columns) }
    }

    /// The matrix in argument `memory`, with its stride and its first number in the
    /// arguments `stride` and `first`.
    ///
    /// # Safety
    /// The memory has the numbers before the first.
    pub(crate) unsafe fn of(args: &Arguments, memory: usize, stride: usize, first: usize) -> Self {
        Self {
            // SAFETY: the caller's contract.
            first: unsafe { args.memory::<T>(memory).add(args.u64(first)) },
            stride: args.u32(stride),
        }
    }

    /// The part from this row and column on. An empty part may begin after the
    /// memory's end.
    #[inline(always)]
    pub(crate) fn from(self, row: usize, column: usize) -> Self {
        Self {
            first: self.first.wrapping_add(row * self.stride + column),
            ..self
        }
    }

    /// The matrix that begins so many numbers later.
    pub(crate) fn skip(self, numbers: usize) -> Self {
        Self {
            first: self.first.wrapping_add(numbers),
            ..self
        }
    }

    /// # Safety
    /// The matrix has the number, and nobody writes it now.
    #[inline(always)]
    pub(crate) unsafe fn get(self, row: usize, column: usize) -> T {
        // SAFETY: the caller's contract.
        unsafe { self.first.add(row * self.stride + column).read() }
    }

    /// # Safety
    /// The matrix has the number, and nobody else uses it now.
    #[inline(always)]
    pub(crate) unsafe fn set(self, row: usize, column: usize, number: T) {
        // SAFETY: the caller's contract.
        unsafe { self.first.add(row * self.stride + column).write(number) }
    }

    /// The part of a product's B, or with `transposed` of its B^T, from this column on.
    pub(crate) fn beginning_at(self, column: usize, transposed: bool) -> Self {
        match transposed {
            true => self.from(column, 0),
            false => self.from(0, column),
        }
    }
}

impl<T: Number> Matrix<T> {
    /// `self = beta self + alpha A B`, or `A B^T`, where self has `rows` rows and
    /// `columns` columns.
    ///
    /// # Safety
    /// The matrices have these sizes, only this call uses those of `self`, and they
    /// overlap no number of the others.
    pub(crate) unsafe fn add_product(
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

    /// As [`Self::add_product`], in pieces for threads.
    ///
    /// # Safety
    /// That of [`Self::add_product`].
    pub(crate) unsafe fn add_product_on(
        self,
        threads: usize,
        size: (usize, usize, usize),
        (a, b, transposed): (Self, Self, bool),
        factors: (T, T),
    ) {
        for_each_part(threads, size, |down, right| {
            let b = b.beginning_at(right.start, transposed);
            let part = (down.len(), right.len(), size.2);
            let a = a.from(down.start, 0);
            // SAFETY: the caller's contract; parts are disjoint.
            unsafe {
                self.from(down.start, right.start)
                    .add_product(part, a, b, transposed, factors);
            }
        });
    }
}

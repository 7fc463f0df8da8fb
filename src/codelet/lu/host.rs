//! The operations on the host. A panel is cut into halves of its columns: the factors of the
//! left half, what follows from them for the right half (`follow`), and the factors of that.
//! Strips of a few columns have a file of their own (`strip`); the rest is products.
//!
//! Source: Toledo, "Locality of reference in LU decomposition with partial pivoting", SIAM
//! Journal on Matrix Analysis and Applications 18, 1997.

mod strip;

use std::ops::Range;

use super::{NO_PIVOT, NOT_FINITE, WIDTH};
use crate::HostValue;
use crate::host::{Arguments, Vectorised, for_each_piece, piece, vectorised};
use crate::tile::matrix::{Matrix, Number, pieces};

/// Columns of a strip, or rows of a triangle that is solved without products: the products
/// beside it are fast, and it takes little time.
const STRIP: usize = 16;

/// Columns of a piece of exchanges and solutions are multiples of this.
const GRAIN: usize = 64;

/// What an exchange of two numbers costs, in operations.
const EXCHANGE: usize = 100;

/// # Safety
/// That of `SharedKernel`.
pub(super) unsafe fn panel<T: Number>(
    args: &[HostValue],
    _first: u64,
    units: Range<u64>,
    threads: usize,
) {
    if units.is_empty() {
        return;
    }
    let args = Arguments {
        codelet: "lu-panel",
        values: args,
    };
    let (rows, columns, first) = (args.u32(2), args.u32(3), args.u32(4));
    let a = Matrix::<T>::new(args.memory::<T>(0).wrapping_add(args.u64(5)), args.u32(6));
    // SAFETY: the memories hold these numbers, and nobody else uses them.
    unsafe {
        let pivots = args.memory::<u32>(1).add(args.u64(7));
        let pivots = std::slice::from_raw_parts_mut(pivots, columns);
        factor(threads, a, (rows, first), pivots);
    }
}

/// The factors of as many columns as there are pivots. Row 0 is row `first` of the matrix.
///
/// # Safety
/// The matrix has these rows and columns, and nobody else uses them.
unsafe fn factor<T: Number>(
    threads: usize,
    a: Matrix<T>,
    (rows, first): (usize, usize),
    pivots: &mut [u32],
) {
    let columns = pivots.len();
    // SAFETY: the caller's contract; the parts of the matrix are disjoint.
    unsafe {
        if columns <= STRIP {
            return strip::factor(threads, a, (rows, first), pivots);
        }
        let half = (columns / 2).next_multiple_of(STRIP);
        let (left, right) = pivots.split_at_mut(half);
        factor(threads, a, (rows, first), left);
        let beside = a.from(0, half);
        follow(threads, a, beside, (rows, first), columns - half, left);
        let below = beside.from(half, 0);
        let size = (rows - half, columns - half, half);
        let product = (a.from(half, 0), beside, false);
        below.add_product_on(threads, size, product, (T::MINUS_ONE, T::ONE));
        factor(threads, below, (rows - half, first + half), right);
        let rows = (rows - half, first + half);
        exchange_on(threads, a.from(half, 0), right, rows, half);
    }
}

/// Exchanges the rows of `b`, and replaces the first of them by the solution of `L X = B`.
///
/// # Safety
/// The matrices have these rows and columns, and nobody else uses those of `b`.
unsafe fn follow<T: Number>(
    threads: usize,
    factors: Matrix<T>,
    b: Matrix<T>,
    (rows, first): (usize, usize),
    columns: usize,
    pivots: &[u32],
) {
    let depth = pivots.len();
    let count = pieces(threads, columns * depth * (depth + EXCHANGE));
    for_each_piece(threads, count, |number| {
        let some = piece(columns, GRAIN, number, count);
        let b = b.from(0, some.start);
        // SAFETY: the caller's contract; pieces are disjoint.
        unsafe {
            exchange_rows(b, pivots, (rows, first), some.len());
            solve(factors, b, depth, some.len());
        }
    });
}

/// Solves `L X = B`, where the diagonal of L is 1, in the place of B: the first half of its
/// rows, then the second without what the first contribute.
///
/// # Safety
/// L has so many rows, B has the given ones, and nobody else uses B.
unsafe fn solve<T: Number>(l: Matrix<T>, b: Matrix<T>, rows: usize, columns: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        if rows <= STRIP {
            return vectorised(Triangle {
                l,
                b,
                rows,
                columns,
            });
        }
        let half = (rows / 2).next_multiple_of(STRIP);
        let below = b.from(half, 0);
        solve(l, b, half, columns);
        let size = (rows - half, columns, half);
        below.add_product(size, l.from(half, 0), b, false, (T::MINUS_ONE, T::ONE));
        solve(l.from(half, half), below, rows - half, columns);
    }
}

/// At most [`STRIP`] rows of B, from which what the rows before them contribute is subtracted.
/// The matrices have these rows and columns, and nobody else uses those of B.
struct Triangle<T> {
    l: Matrix<T>,
    b: Matrix<T>,
    rows: usize,
    columns: usize,
}

/// Columns of a triangle that are solved before the next ones: their rows fit into the
/// nearest cache.
const NEAR: usize = 256;

impl<T: Number> Vectorised for Triangle<T> {
    #[inline(always)]
    fn run(self) {
        for begin in (0..self.columns).step_by(NEAR) {
            let columns = begin..(begin + NEAR).min(self.columns);
            for row in 1..self.rows {
                for known in 0..row {
                    // SAFETY: the matrices have these numbers, which nobody else uses, and
                    // the rows are distinct.
                    unsafe {
                        let factor = self.l.get(row, known);
                        let from = &*self.b.row(known, columns.clone());
                        let to = self.b.row(row, columns.clone());
                        for (to, from) in to.iter_mut().zip(from) {
                            *to = *to - factor * *from;
                        }
                    }
                }
            }
        }
    }
}

/// Exchanges two rows in some columns.
///
/// # Safety
/// The matrix has them, and nobody else uses them.
unsafe fn swap<T: Number>(of: Matrix<T>, (one, other): (usize, usize), columns: usize) {
    if one != other {
        // SAFETY: the caller's contract; the rows are distinct.
        unsafe {
            let with = of.row(other, 0..columns);
            of.row(one, 0..columns).swap_with_slice(with);
        }
    }
}

/// Exchanges rows of `b`, for each of `pivots`. It has `rows` rows and begins with row `first`
/// of the matrix.
///
/// # Safety
/// The matrix has these rows and columns, and nobody else uses them.
unsafe fn exchange_rows<T: Number>(
    b: Matrix<T>,
    pivots: &[u32],
    (rows, first): (usize, usize),
    columns: usize,
) {
    for (row, pivot) in pivots.iter().enumerate() {
        let other = (*pivot as usize).wrapping_sub(first);
        // A column without a pivot has no such row.
        if other < rows {
            // SAFETY: the caller's contract.
            unsafe { swap(b, (row, other), columns) }
        }
    }
}

/// As [`exchange_rows`], in pieces for threads.
///
/// # Safety
/// That of [`exchange_rows`].
unsafe fn exchange_on<T: Number>(
    threads: usize,
    b: Matrix<T>,
    pivots: &[u32],
    rows: (usize, usize),
    columns: usize,
) {
    let count = pieces(threads, columns * pivots.len() * EXCHANGE);
    for_each_piece(threads, count, |number| {
        let some = piece(columns, GRAIN, number, count);
        // SAFETY: the caller's contract; pieces are disjoint.
        unsafe { exchange_rows(b.from(0, some.start), pivots, rows, some.len()) }
    });
}

/// The columns of these units.
fn columns_of(units: &Range<u64>, count: usize) -> Range<usize> {
    let at = |unit: u64| (unit as usize * WIDTH as usize).min(count);
    at(units.start)..at(units.end)
}

/// # Safety
/// That of `SharedKernel`.
pub(super) unsafe fn row<T: Number>(
    args: &[HostValue],
    _first: u64,
    units: Range<u64>,
    threads: usize,
) {
    let args = Arguments {
        codelet: "lu-row",
        values: args,
    };
    let (rows, count, depth, first) = (args.u32(3), args.u32(4), args.u32(5), args.u32(6));
    let columns = columns_of(&units, count);
    let factors = Matrix::<T>::new(args.memory::<T>(0).wrapping_add(args.u64(7)), args.u32(8));
    let b = Matrix::<T>::new(args.memory::<T>(2).wrapping_add(args.u64(10)), args.u32(11));
    let b = b.from(0, columns.start);
    // SAFETY: the memories hold these numbers, and these columns of B are this call's.
    unsafe {
        let pivots = std::slice::from_raw_parts(args.memory::<u32>(1).add(args.u64(9)), depth);
        follow(threads, factors, b, (rows, first), columns.len(), pivots);
    }
}

/// # Safety
/// That of `SharedKernel`.
pub(super) unsafe fn exchange<T: Number>(
    args: &[HostValue],
    _first: u64,
    units: Range<u64>,
    threads: usize,
) {
    let args = Arguments {
        codelet: "lu-exchange",
        values: args,
    };
    let (rows, count, first) = (args.u32(2), args.u32(3), args.u32(4));
    let columns = columns_of(&units, count);
    let b = Matrix::<T>::new(args.memory::<T>(1).wrapping_add(args.u64(6)), args.u32(7));
    let b = b.from(0, columns.start);
    // SAFETY: the memories hold these numbers, and these columns of B are this call's.
    unsafe {
        let pivots = std::slice::from_raw_parts(args.memory::<u32>(0).add(args.u64(5)), rows);
        exchange_on(threads, b, pivots, (rows, first), columns.len());
    }
}

#[cfg(test)]
mod tests;

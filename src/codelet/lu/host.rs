//! The operations on the host: strips of a few columns by loops, the rest by products of
//! one thread.

use std::ops::Range;

use super::{NO_PIVOT, NOT_FINITE, WIDTH};
use crate::codelet::HostValue;
use crate::codelet::host::Arguments;
use crate::codelet::tile::matrix::{Matrix, Number};

/// Columns or rows of a strip: the products beside it are fast, and it takes little time.
const STRIP: usize = 32;

/// `to -= factor * from`.
fn subtract_row<T: Number>(to: &mut [T], factor: T, from: &[T]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *to - factor * *from;
    }
}

/// `to -= A B`.
///
/// # Safety
/// The matrices have these rows, columns and depth, only this call uses those of `to`, and
/// they overlap no number of the others.
unsafe fn subtract<T: Number>(
    to: Matrix<T>,
    size: (usize, usize, usize),
    a: Matrix<T>,
    b: Matrix<T>,
) {
    // SAFETY: the caller's contract.
    unsafe { to.add_product(size, a, b, false, (T::MINUS_ONE, T::ONE)) }
}

/// Strips of `size` rows or columns.
fn strips(size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..size)
        .step_by(STRIP)
        .map(move |begin| begin..(begin + STRIP).min(size))
}

/// Subtracts from the rows of a strip what the rows before them in the strip contribute.
///
/// # Safety
/// The matrices have these rows and columns, only this call uses those of `b`, and no number
/// of a strip of `factors` is among them.
unsafe fn solve_strip<T: Number>(
    factors: Matrix<T>,
    b: Matrix<T>,
    strip: Range<usize>,
    columns: Range<usize>,
) {
    for row in strip.start + 1..strip.end {
        for known in strip.start..row {
            // SAFETY: the caller's contract.
            unsafe {
                let from = b.row(known, columns.clone());
                subtract_row(b.row(row, columns.clone()), factors.get(row, known), from);
            }
        }
    }
}

/// # Safety
/// That of `HostKernel`.
pub(super) unsafe fn panel<T: Number>(args: &[HostValue], _first: u64, units: Range<u64>) {
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
        for strip in strips(columns) {
            for column in strip.clone() {
                let (row, most) = greatest(a, column, rows);
                pivots[column] = match most.is_finite() {
                    false => NOT_FINITE,
                    true if most == T::default() => NO_PIVOT,
                    true => (first + row) as u32,
                };
                if pivots[column] < NOT_FINITE {
                    swap(a, (column, row), 0..columns);
                    eliminate(a, column, column + 1..rows, strip.end);
                }
            }
            let Range { start, end } = strip;
            if end == columns {
                break;
            }
            solve_strip(a, a, start..end, end..columns);
            let rest = (rows - end, columns - end, end - start);
            subtract(
                a.from(end, end),
                rest,
                a.from(end, start),
                a.from(start, end),
            );
        }
    }
}

/// The row from the diagonal on with the greatest number of a column, the first of equal
/// ones, and its size. One that is no number is the greatest, so that it is found.
///
/// # Safety
/// The matrix has these rows and the column, and nobody writes them.
unsafe fn greatest<T: Number>(a: Matrix<T>, column: usize, rows: usize) -> (usize, T) {
    // SAFETY: the caller's contract, here and below.
    let (mut at, mut most) = (column, unsafe { a.get(column, column) }.abs());
    for row in column + 1..rows {
        let size = unsafe { a.get(row, column) }.abs();
        if size > most || (is_nan(size) && !is_nan(most)) {
            (at, most) = (row, size);
        }
    }
    (at, most)
}

#[expect(clippy::eq_op, reason = "what is no number differs from itself")]
fn is_nan<T: Number>(number: T) -> bool {
    number != number
}

/// Exchanges two rows in some columns.
///
/// # Safety
/// The matrix has them, and nobody else uses them.
unsafe fn swap<T: Number>(of: Matrix<T>, (one, other): (usize, usize), columns: Range<usize>) {
    if one != other {
        // SAFETY: the caller's contract; the rows are distinct.
        unsafe {
            let with = of.row(other, columns.clone());
            of.row(one, columns).swap_with_slice(with);
        }
    }
}

/// Divides a column by its pivot, and subtracts it from the columns before `end`.
///
/// # Safety
/// The matrix has these rows and columns, and nobody else uses them.
unsafe fn eliminate<T: Number>(a: Matrix<T>, column: usize, rows: Range<usize>, end: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        let diagonal = a.get(column, column);
        let from = &*a.row(column, column + 1..end);
        for row in rows {
            let factor = a.get(row, column) / diagonal;
            a.set(row, column, factor);
            subtract_row(a.row(row, column + 1..end), factor, from);
        }
    }
}

/// Exchanges rows of some columns, for each of `pivots`. The matrix `b` has `rows` rows and
/// begins with row `first`.
///
/// # Safety
/// The matrix has these rows and columns, and nobody else uses them.
unsafe fn exchange_rows<T: Number>(
    b: Matrix<T>,
    pivots: &[u32],
    (rows, first): (usize, usize),
    columns: &Range<usize>,
) {
    for (row, pivot) in pivots.iter().enumerate() {
        let other = (*pivot as usize).wrapping_sub(first);
        // A column without a pivot has no such row.
        if other < rows {
            // SAFETY: the caller's contract.
            unsafe { swap(b, (row, other), columns.clone()) }
        }
    }
}

/// The columns of these units.
fn columns_of(units: &Range<u64>, count: usize) -> Range<usize> {
    let at = |unit: u64| (unit as usize * WIDTH as usize).min(count);
    at(units.start)..at(units.end)
}

/// # Safety
/// That of `HostKernel`.
pub(super) unsafe fn row<T: Number>(args: &[HostValue], _first: u64, units: Range<u64>) {
    let args = Arguments {
        codelet: "lu-row",
        values: args,
    };
    let (rows, count, depth, first) = (args.u32(3), args.u32(4), args.u32(5), args.u32(6));
    let columns = columns_of(&units, count);
    let factors = Matrix::<T>::new(args.memory::<T>(0).wrapping_add(args.u64(7)), args.u32(8));
    let b = Matrix::<T>::new(args.memory::<T>(2).wrapping_add(args.u64(10)), args.u32(11));
    // SAFETY: the memories hold these numbers, and these columns of B are this call's.
    unsafe {
        let pivots = std::slice::from_raw_parts(args.memory::<u32>(1).add(args.u64(9)), depth);
        exchange_rows(b, pivots, (rows, first), &columns);
        for strip in strips(depth) {
            solve_strip(factors, b, strip.clone(), columns.clone());
            let Range { start, end } = strip;
            let rest = (depth - end, columns.len(), end - start);
            let known = b.from(start, columns.start);
            subtract(
                b.from(end, columns.start),
                rest,
                factors.from(end, start),
                known,
            );
        }
    }
}

/// # Safety
/// That of `HostKernel`.
pub(super) unsafe fn exchange<T: Number>(args: &[HostValue], _first: u64, units: Range<u64>) {
    let args = Arguments {
        codelet: "lu-exchange",
        values: args,
    };
    let (rows, count, first) = (args.u32(2), args.u32(3), args.u32(4));
    let b = Matrix::<T>::new(args.memory::<T>(1).wrapping_add(args.u64(6)), args.u32(7));
    // SAFETY: the memories hold these numbers, and these columns of B are this call's.
    unsafe {
        let pivots = std::slice::from_raw_parts(args.memory::<u32>(0).add(args.u64(5)), rows);
        exchange_rows(b, pivots, (rows, first), &columns_of(&units, count));
    }
}

#[cfg(test)]
mod tests;

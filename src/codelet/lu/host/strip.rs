//! The factors of a few columns. They are copied to where each column is contiguous, so that
//! vectors hold numbers of one column; in a matrix by rows, they would lie in one set of the
//! caches.

use super::{NO_PIVOT, NOT_FINITE, STRIP};
use crate::codelet::host::{Vectorised, vectorised};
use crate::codelet::tile::matrix::{Matrix, Number};

/// The factors of as many columns as there are pivots, at most [`STRIP`]. Row 0 is row
/// `first` of the matrix.
///
/// # Safety
/// The matrix has these rows and columns, and nobody else uses them.
pub(super) unsafe fn factor<T: Number>(
    a: Matrix<T>,
    (rows, first): (usize, usize),
    pivots: &mut [u32],
) {
    let mut numbers = vec![T::default(); rows * pivots.len()];
    vectorised(Strip {
        a,
        rows,
        first,
        pivots,
        numbers: &mut numbers,
    });
}

/// See [`factor`]. The numbers have room for those columns.
struct Strip<'a, T> {
    a: Matrix<T>,
    rows: usize,
    first: usize,
    pivots: &'a mut [u32],
    numbers: &'a mut [T],
}

impl<T: Number> Vectorised for Strip<'_, T> {
    #[inline(always)]
    fn run(self) {
        let Self {
            a,
            rows,
            first,
            pivots,
            numbers,
        } = self;
        let columns = pivots.len();
        // SAFETY: the contract of `factor`, here and at the end.
        copy(rows, columns, |row, column| unsafe {
            numbers[column * rows + row] = a.get(row, column);
        });
        for column in 0..columns {
            let (left, right) = numbers.split_at_mut((column + 1) * rows);
            let own = &mut left[column * rows..];
            let (row, most) = greatest(&own[column..]);
            let row = column + row;
            pivots[column] = match most.is_finite() {
                false => NOT_FINITE,
                true if most == T::default() => NO_PIVOT,
                true => (first + row) as u32,
            };
            if pivots[column] >= NOT_FINITE {
                continue;
            }
            own.swap(column, row);
            let diagonal = own[column];
            for number in &mut own[column + 1..] {
                *number = *number / diagonal;
            }
            let factors = &own[column + 1..];
            for right in right.chunks_exact_mut(rows) {
                right.swap(column, row);
                let known = right[column];
                for (to, factor) in right[column + 1..].iter_mut().zip(factors) {
                    *to = *to - *factor * known;
                }
            }
            for left in left[..column * rows].chunks_exact_mut(rows) {
                left.swap(column, row);
            }
        }
        copy(rows, columns, |row, column| unsafe {
            a.set(row, column, numbers[column * rows + row]);
        });
    }
}

/// Calls `each` with all rows and columns, some rows of one column after the other, so that
/// both the rows and the columns that are used at once stay in the nearest cache.
#[inline(always)]
fn copy(rows: usize, columns: usize, mut each: impl FnMut(usize, usize)) {
    for begin in (0..rows).step_by(STRIP) {
        for column in 0..columns {
            for row in begin..(begin + STRIP).min(rows) {
                each(row, column);
            }
        }
    }
}

/// The place of the greatest number, the first of equal ones, and its size. One that is no
/// number is the greatest, so that it is found.
#[inline(always)]
fn greatest<T: Number>(numbers: &[T]) -> (usize, T) {
    let bits = numbers.iter().map(|number| number.size_bits());
    let most = bits.fold(T::Bits::default(), Ord::max);
    let place = numbers.iter().position(|number| number.size_bits() == most);
    let place = place.unwrap_or(0);
    (place, numbers[place].abs())
}

//! The factors of a few columns. They are copied to where each column is contiguous, so that
//! vectors hold numbers of one column; in a matrix by rows, they would lie in one set of the
//! caches. Threads have rows of their own. They meet once a column: they subtract what the
//! column contributes to the next ones, and search the next pivot, in one go.

use std::ops::Range;

use super::{NO_PIVOT, NOT_FINITE, STRIP};
use crate::host::{Vectorised, map_pieces, piece, vectorised};
use crate::tile::matrix::{Matrix, Number};

/// Least rows of a thread: with fewer, threads wait for one another longer than they work.
const LEAST_ROWS: usize = 1024;

/// Rows of a thread are multiples of this.
const GRAIN: usize = 64;

/// Rows of a column that fit into the nearest cache with those of another one.
const NEAR: usize = 1024;

/// The factors of as many columns as there are pivots, at most [`STRIP`]. Row 0 is row
/// `first` of the matrix.
///
/// # Safety
/// The matrix has these rows and columns, and nobody else uses them.
pub(super) unsafe fn factor<T: Number>(
    threads: usize,
    a: Matrix<T>,
    (rows, first): (usize, usize),
    pivots: &mut [u32],
) {
    let width = pivots.len();
    let mut numbers = vec![T::default(); rows * width];
    // Its rows are the columns of the strip.
    let columns = Matrix::new(numbers.as_mut_ptr(), rows);
    let count = threads.min(rows / LEAST_ROWS).max(1);
    let rows_of = |number| piece(rows, GRAIN, number, count);
    // The greatest of what the threads find.
    let each = |work: &(dyn Fn(Range<usize>) -> Option<Greatest<T>> + Sync)| {
        let found = map_pieces(threads, count, |number| work(rows_of(number)));
        found.into_iter().flatten().reduce(Greatest::or)
    };
    let mut next = each(&|rows| {
        // SAFETY: the contract of this function; threads have rows of their own.
        copy(rows.clone(), width, |row, column| unsafe {
            columns.set(column, row, a.get(row, column));
        });
        // SAFETY: as above.
        Greatest::of(unsafe { columns.row(0, rows.clone()) }, rows.start)
    });
    for (column, pivot) in pivots.iter_mut().enumerate() {
        let place = next.map_or(column, |greatest| greatest.row);
        // SAFETY: the strip has these numbers, and no thread works on it now.
        let size = unsafe { columns.get(column, place) }.abs();
        let diagonal = match size.is_finite() {
            false => Err(NOT_FINITE),
            true if size == T::default() => Err(NO_PIVOT),
            true => {
                for of in 0..width {
                    // SAFETY: as above.
                    unsafe { columns.row(of, 0..rows) }.swap(column, place);
                }
                // SAFETY: as above.
                Ok(unsafe { columns.get(column, column) })
            }
        };
        *pivot = match diagonal {
            Ok(_) => (first + place) as u32,
            Err(why) => why,
        };
        next = each(&|rows| {
            let mut found = None;
            vectorised(Step {
                columns,
                width,
                column,
                diagonal: diagonal.ok(),
                rows: rows.start.max(column + 1)..rows.end,
                found: &mut found,
            });
            found
        });
    }
    each(&|rows| {
        // SAFETY: as in the first copy.
        copy(rows, width, |row, column| unsafe {
            a.set(row, column, columns.get(column, row));
        });
        None
    });
}

/// What follows from a column in some rows below its diagonal, which only this call uses.
struct Step<'a, T: Number> {
    /// A row for each column.
    columns: Matrix<T>,
    width: usize,
    column: usize,
    /// None of a column without a pivot.
    diagonal: Option<T>,
    rows: Range<usize>,
    /// The greatest number of the next column.
    found: &'a mut Option<Greatest<T>>,
}

impl<T: Number> Vectorised for Step<'_, T> {
    #[inline(always)]
    fn run(self) {
        let (columns, column) = (self.columns, self.column);
        for begin in self.rows.clone().step_by(NEAR) {
            let rows = begin..(begin + NEAR).min(self.rows.end);
            if let Some(diagonal) = self.diagonal {
                // SAFETY: these rows are this call's, and those of the diagonal nobody writes.
                unsafe {
                    let own = columns.row(column, rows.clone());
                    for number in &mut *own {
                        *number = *number / diagonal;
                    }
                    for right in column + 1..self.width {
                        let known = columns.get(right, column);
                        let to = columns.row(right, rows.clone());
                        for (to, factor) in to.iter_mut().zip(&*own) {
                            *to = *to - *factor * known;
                        }
                    }
                }
            }
            if column + 1 < self.width {
                // SAFETY: as above.
                let next = unsafe { columns.row(column + 1, rows.clone()) };
                let found = [*self.found, Greatest::of(next, rows.start)];
                *self.found = found.into_iter().flatten().reduce(Greatest::or);
            }
        }
    }
}

/// The greatest number of some rows: the bits of its size, and its row.
#[derive(Clone, Copy)]
struct Greatest<T: Number> {
    bits: T::Bits,
    row: usize,
}

impl<T: Number> Greatest<T> {
    /// Of numbers from this row on, the first of equal ones; none of no numbers. One that is no
    /// number is the greatest, so that it is found.
    #[inline(always)]
    fn of(numbers: &[T], first: usize) -> Option<Self> {
        let bits = numbers.iter().map(|number| number.size_bits());
        let bits = bits.fold(T::Bits::default(), Ord::max);
        let place = numbers
            .iter()
            .position(|number| number.size_bits() == bits)?;
        Some(Self {
            bits,
            row: first + place,
        })
    }

    /// The greater one of this and what later rows have.
    #[inline(always)]
    fn or(self, later: Self) -> Self {
        match later.bits > self.bits {
            true => later,
            false => self,
        }
    }
}

/// Calls `each` with all of some rows and columns, a few rows of one column after the other,
/// so that both the rows and the columns that are used at once stay in the nearest cache.
#[inline(always)]
fn copy(rows: Range<usize>, columns: usize, mut each: impl FnMut(usize, usize)) {
    for begin in rows.clone().step_by(STRIP) {
        for column in 0..columns {
            for row in begin..(begin + STRIP).min(rows.end) {
                each(row, column);
            }
        }
    }
}

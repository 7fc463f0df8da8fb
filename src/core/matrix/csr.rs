//! A sparse matrix in memory: compressed sparse rows, checked once, and its transposed matrix.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use bytemuck::allocation::try_zeroed_vec;
use bytemuck::{Pod, Zeroable};
use thiserror::Error;

use super::MatrixError;
use crate::machine::host::Memory;

/// The most rows or columns of a matrix: kernels count both in signed 32-bit integers.
pub const MOST: u32 = i32::MAX as u32;

/// Compressed sparse rows: the entries of row `r` are at
/// `row_starts[r]..row_starts[r + 1]`, with ascending columns and no duplicates.
///
/// ```
/// use pdawl_core::matrix::Csr;
///
/// # fn main() -> Result<(), pdawl_core::matrix::CsrError> {
/// // | 1 0 2 |
/// // | 0 0 0 |
/// let matrix = Csr::new(2, 3, vec![0, 2, 2], vec![0, 2], vec![1.0, 2.0])?;
/// assert_eq!(matrix.row(0), (&[0, 2][..], &[1.0, 2.0][..]));
/// assert_eq!(matrix.row_length(1), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Csr {
    rows: u32,
    columns: u32,
    row_starts: Vec<u64>,
    column_of: Shared<u32>,
    values: Shared<f64>,
}

/// Why arrays are not a matrix. Rows and columns are counted from 0.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CsrError {
    #[error("{count} {what} are more than the {MOST} that a matrix can have")]
    TooLarge { what: &'static str, count: u32 },
    #[error("{rows} rows need {} row starts, and there are {found}", u64::from(*.rows) + 1)]
    Starts { rows: u32, found: usize },
    #[error("the first row starts at entry {0}; it must start at 0")]
    First(u64),
    #[error("row {row} starts at entry {start} and ends before it, at {end}")]
    Falling { row: u32, start: u64, end: u64 },
    #[error("the rows have {expected} entries, and there are {found} {what}")]
    Entries {
        expected: u64,
        what: &'static str,
        found: usize,
    },
    #[error("row {row} has an entry in column {column}, and the matrix has {columns} columns")]
    Column { row: u32, column: u32, columns: u32 },
    #[error("row {row} has column {column} after column {before}; columns must ascend")]
    Order { row: u32, before: u32, column: u32 },
}

impl Csr {
    /// A matrix of these arrays, which are checked: its own, or [`Shared`] ones, which stay
    /// where they are.
    ///
    /// # Errors
    /// When the arrays contradict each other, a column lies outside the matrix, or the
    /// columns of a row do not ascend. The error names the first wrong row.
    pub fn new(
        rows: u32,
        columns: u32,
        row_starts: Vec<u64>,
        column_of: impl Into<Shared<u32>>,
        values: impl Into<Shared<f64>>,
    ) -> Result<Self, CsrError> {
        let (column_of, values) = (column_of.into(), values.into());
        for (what, count) in [("rows", rows), ("columns", columns)] {
            if count > MOST {
                return Err(CsrError::TooLarge { what, count });
            }
        }
        check_starts(rows, &row_starts, column_of.len(), values.len())?;
        let matrix = Self {
            rows,
            columns,
            row_starts,
            column_of,
            values,
        };
        for row in 0..rows {
            check_row(row, matrix.row(row).0, columns)?;
        }
        Ok(matrix)
    }

    /// A matrix of arrays that are known to be one.
    pub(super) fn of_checked(
        rows: u32,
        columns: u32,
        row_starts: Vec<u64>,
        column_of: Vec<u32>,
        values: Vec<f64>,
    ) -> Self {
        Self {
            rows,
            columns,
            row_starts,
            column_of: column_of.into(),
            values: values.into(),
        }
    }

    pub fn rows(&self) -> u32 {
        self.rows
    }

    pub fn columns(&self) -> u32 {
        self.columns
    }

    /// The number of stored entries, explicit zeros included.
    pub fn nonzeros(&self) -> u64 {
        self.values.len() as u64
    }

    /// Where each row starts, and where the last one ends: `rows + 1` numbers.
    pub fn row_starts(&self) -> &[u64] {
        &self.row_starts
    }

    /// The column of each entry.
    pub fn column_of(&self) -> &[u32] {
        &self.column_of
    }

    /// The value of each entry.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The columns and values of a row.
    pub fn row(&self, row: u32) -> (&[u32], &[f64]) {
        let row = row as usize;
        let entries = self.row_starts[row] as usize..self.row_starts[row + 1] as usize;
        (&self.column_of[entries.clone()], &self.values[entries])
    }

    /// The number of entries of a row.
    pub fn row_length(&self, row: u32) -> u64 {
        let row = row as usize;
        self.row_starts[row + 1] - self.row_starts[row]
    }
}

/// Checks that the starts ascend from 0 to the number of entries.
fn check_starts(
    rows: u32,
    starts: &[u64],
    columns_found: usize,
    values_found: usize,
) -> Result<(), CsrError> {
    let (Some(first), Some(last), true) = (
        starts.first(),
        starts.last(),
        starts.len() as u64 == u64::from(rows) + 1,
    ) else {
        return Err(CsrError::Starts {
            rows,
            found: starts.len(),
        });
    };
    if *first != 0 {
        return Err(CsrError::First(*first));
    }
    if let Some(row) = starts.windows(2).position(|pair| pair[0] > pair[1]) {
        return Err(CsrError::Falling {
            row: row as u32,
            start: starts[row],
            end: starts[row + 1],
        });
    }
    for (what, found) in [("columns", columns_found), ("values", values_found)] {
        if found as u64 != *last {
            return Err(CsrError::Entries {
                expected: *last,
                what,
                found,
            });
        }
    }
    Ok(())
}

/// Checks that the columns of a row ascend and lie within the matrix.
fn check_row(row: u32, found: &[u32], columns: u32) -> Result<(), CsrError> {
    if let Some(pair) = found.windows(2).find(|pair| pair[0] >= pair[1]) {
        return Err(CsrError::Order {
            row,
            before: pair[0],
            column: pair[1],
        });
    }
    match found.last() {
        Some(&column) if column >= columns => Err(CsrError::Column {
            row,
            column,
            columns,
        }),
        _ => Ok(()),
    }
}

/// An array that is not changed. It owns its elements, or keeps whoever does.
#[derive(Clone)]
pub struct Shared<T> {
    elements: NonNull<[T]>,
    /// Keeps the elements where they are.
    owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: the elements are only read, and the owner can be shared and sent.
unsafe impl<T: Sync> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// Elements that an owner keeps.
    ///
    /// # Safety
    /// The elements must stay at their place, and must not be written, as long as the owner
    /// is not dropped.
    pub unsafe fn new(elements: NonNull<[T]>, owner: Arc<dyn Any + Send + Sync>) -> Self {
        Self { elements, owner }
    }
}

impl<T: Pod> Shared<T> {
    /// The same bytes as elements of another type.
    ///
    /// # Panics
    /// When they are no whole number of elements, or are not aligned.
    pub fn cast<U: Pod>(self) -> Shared<U> {
        Shared {
            elements: NonNull::from(bytemuck::cast_slice::<T, U>(&self)),
            owner: self.owner,
        }
    }
}

impl<T: Clone + Send + Sync + 'static> Shared<T> {
    /// The elements as a vector: without a copy if nobody else has them, and they were made of
    /// a vector.
    pub fn into_vec(self) -> Vec<T> {
        match Arc::clone(&self.owner).downcast::<Vec<T>>() {
            Ok(vector) if vector.len() == self.len() => {
                drop(self);
                Arc::unwrap_or_clone(vector)
            }
            _ => self.to_vec(),
        }
    }
}

impl<T: Send + Sync + 'static> From<Vec<T>> for Shared<T> {
    fn from(elements: Vec<T>) -> Self {
        let owner = Arc::new(elements);
        let elements = NonNull::from(owner.as_slice());
        // SAFETY: nobody can reach the vector within the `Arc` to change it.
        unsafe { Self::new(elements, owner) }
    }
}

impl<T> Deref for Shared<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: of `new`.
        unsafe { self.elements.as_ref() }
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Csr {
    /// The transposed matrix, with `value(row, value)` of each entry, where `row` is that of
    /// this matrix.
    pub fn transposed(&self, value: impl Fn(u32, f64) -> f64) -> Self {
        let mut starts = vec![0u64; self.columns() as usize + 1];
        for column in self.column_of() {
            starts[*column as usize + 1] += 1;
        }
        for column in 1..starts.len() {
            starts[column] += starts[column - 1];
        }
        let count = self.nonzeros() as usize;
        let (mut row_of, mut values) = (vec![0u32; count], vec![0.0; count]);
        let mut next = starts.clone();
        for row in 0..self.rows() {
            let (columns, of_row) = self.row(row);
            for (column, number) in columns.iter().zip(of_row) {
                let place = &mut next[*column as usize];
                // Rows ascend, so the columns of the transposed rows do, too.
                row_of[*place as usize] = row;
                values[*place as usize] = value(row, *number);
                *place += 1;
            }
        }
        Self::of_checked(self.columns(), self.rows(), starts, row_of, values)
    }
}

/// Bytes of a matrix in memory.
pub(super) fn matrix_bytes(rows: u64, nonzeros: u64) -> u64 {
    let entry = (size_of::<u32>() + size_of::<f64>()) as u64;
    nonzeros
        .saturating_mul(entry)
        .saturating_add(starts_bytes(rows))
}

/// Bytes of the row starts of a matrix.
pub(super) fn starts_bytes(rows: u64) -> u64 {
    rows.saturating_add(1)
        .saturating_mul(size_of::<u64>() as u64)
}

/// Checks that `needed` bytes are available. `most` is the limit in bytes; `None` is
/// the memory of this host that can be had without swapping.
///
/// # Errors
/// An error that names `what` needs them, and both figures.
pub(super) fn check_memory(what: &str, needed: u64, most: Option<u64>) -> Result<(), MatrixError> {
    let available = most.or_else(available).unwrap_or(u64::MAX);
    if needed <= available {
        return Ok(());
    }
    Err(MatrixError::Memory {
        what: what.to_owned(),
        needed,
        available,
    })
}

/// Bytes that this process can have without swapping.
fn available() -> Option<u64> {
    let memory = Memory::read()?;
    let without_swap = Memory {
        swap_free: 0,
        ..memory
    };
    Some(without_swap.obtainable(0))
}

/// `count` zeros, in memory that the system has not provided yet.
///
/// # Errors
/// When the system refuses the memory.
pub(super) fn zeros<T: Zeroable>(count: u64) -> Result<Vec<T>, MatrixError> {
    let refused = || MatrixError::Refused {
        bytes: count.saturating_mul(size_of::<T>() as u64),
    };
    let count = usize::try_from(count).map_err(|_| refused())?;
    try_zeroed_vec(count).map_err(|()| refused())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrices::awkward;

    #[test]
    fn rows_are_found() {
        let matrix = Csr::new(3, 4, vec![0, 2, 2, 3], vec![0, 3, 1], vec![1.0, 2.0, 3.0]).unwrap();
        assert_eq!(matrix.row(0), (&[0, 3][..], &[1.0, 2.0][..]));
        assert_eq!(matrix.row(1), (&[][..], &[][..]));
        assert_eq!(matrix.row(2), (&[1][..], &[3.0][..]));
        assert_eq!([0, 1, 2].map(|row| matrix.row_length(row)), [2, 0, 1]);
        assert_eq!(
            (matrix.rows(), matrix.columns(), matrix.nonzeros()),
            (3, 4, 3)
        );
    }

    #[test]
    fn a_matrix_may_be_empty() {
        for (rows, columns) in [(0, 0), (0, 7), (3, 0), (2, 2)] {
            let starts = vec![0; rows as usize + 1];
            let matrix = Csr::new(rows, columns, starts, Vec::new(), Vec::new()).unwrap();
            assert_eq!(matrix.nonzeros(), 0);
        }
    }

    #[test]
    fn what_is_no_matrix_is_reported() {
        use CsrError::{Column, Entries, Falling, First, Order, Starts, TooLarge};
        let check = |columns: u32, starts: &[u64], of: &[u32], values: usize| {
            let values = vec![1.0; values];
            Csr::new(2, columns, starts.to_vec(), of.to_vec(), values).unwrap_err()
        };
        let (two, entries) = (2, |what, found| Entries {
            expected: 2,
            what,
            found,
        });
        for (found, expected) in [
            (
                check(MOST + 1, &[0, 0, 0], &[], 0),
                TooLarge {
                    what: "columns",
                    count: MOST + 1,
                },
            ),
            (check(3, &[], &[], 0), Starts { rows: 2, found: 0 }),
            (check(3, &[0, 0], &[], 0), Starts { rows: 2, found: 2 }),
            (check(3, &[1, 1, 1], &[0], 1), First(1)),
            (
                check(3, &[0, 2, 1], &[0], 1),
                Falling {
                    row: 1,
                    start: 2,
                    end: 1,
                },
            ),
            (check(3, &[0, 1, 2], &[0], two), entries("columns", 1)),
            (check(3, &[0, 1, 2], &[0, 1], 1), entries("values", 1)),
            (
                check(3, &[0, 1, 2], &[0, 3], two),
                Column {
                    row: 1,
                    column: 3,
                    columns: 3,
                },
            ),
            (
                check(3, &[0, 0, 2], &[1, 1], two),
                Order {
                    row: 1,
                    before: 1,
                    column: 1,
                },
            ),
            (
                check(3, &[0, 0, 2], &[2, 1], two),
                Order {
                    row: 1,
                    before: 2,
                    column: 1,
                },
            ),
        ] {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn entries_change_places() {
        for (name, matrix) in awkward() {
            let transposed = matrix.transposed(|_, value| value);
            let entries = |of: &super::Csr| {
                let rows = (0..of.rows()).flat_map(|row| {
                    let (columns, values) = of.row(row);
                    let entries = columns.iter().zip(values);
                    let entries = entries.map(move |(column, value)| (row, *column, *value));
                    entries.collect::<Vec<_>>()
                });
                rows.collect::<Vec<_>>()
            };
            let mut found: Vec<_> = entries(&transposed)
                .into_iter()
                .map(|(row, column, value)| (column, row, value.to_bits()))
                .collect();
            found.sort_unstable();
            let right: Vec<_> = entries(&matrix)
                .into_iter()
                .map(|(row, column, value)| (row, column, value.to_bits()))
                .collect();
            assert_eq!(found, right, "{name}");
            let rows = matrix.transposed(|row, _| row.into());
            assert!(
                entries(&rows)
                    .iter()
                    .all(|(_, column, row)| f64::from(*column) == *row)
            );
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_both_figures() {
        assert!(check_memory("it", 100, Some(100)).is_ok());
        let message = check_memory("reading it", 3 << 30, Some(2 << 30))
            .unwrap_err()
            .to_string();
        assert!(message.contains("reading it needs 3.00 GiB"), "{message}");
        assert!(message.contains("2.00 GiB"), "{message}");
        assert!(check_memory("it", 1, None).is_ok());
        assert!(check_memory("it", u64::MAX - 1, None).is_err());
    }

    #[test]
    fn bytes_are_those_of_the_arrays() {
        assert_eq!(matrix_bytes(3, 5), 4 * 8 + 5 * 12);
        assert_eq!(matrix_bytes(u64::MAX, u64::MAX), u64::MAX);
        assert_eq!(zeros::<f64>(3).unwrap(), [0.0; 3]);
        assert!(matches!(
            zeros::<f64>(u64::MAX),
            Err(MatrixError::Refused { .. })
        ));
    }
}

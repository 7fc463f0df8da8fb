//! Generates banded matrices, and matrices with uniformly distributed columns.

use super::fill;
use super::fill::{fill, starts};
use crate::matrix::control::Control;
use crate::matrix::csr::Csr;
use crate::matrix::{MatrixError, memory};

/// A square matrix with all entries of row `r` from column `r - half` to
/// `r + half`.
///
/// # Errors
/// When the matrix does not fit into memory, and on interruption.
pub fn banded(
    rows: u32,
    half: u32,
    seed: u64,
    memory: Option<u64>,
    control: &mut Control,
) -> Result<Csr, MatrixError> {
    let half = half.min(rows.saturating_sub(1));
    let band = |row: u32| row.saturating_sub(half)..row.saturating_add(half).min(rows - 1) + 1;
    // The band lacks a triangle in two corners.
    let (wide, half) = (2 * u64::from(half) + 1, u64::from(half));
    let nonzeros = u64::from(rows).saturating_mul(wide) - half * (half + 1) * u64::from(rows > 0);
    let needed = memory::matrix_bytes(rows.into(), nonzeros);
    memory::check("making a banded matrix", needed, memory)?;
    let starts = starts(rows, control, |row| band(row).len() as u64)?;
    fill(starts, seed, control, |row, _, columns| {
        for (slot, column) in columns.iter_mut().zip(band(row)) {
            *slot = column;
        }
    })
}

/// A square matrix with `per_row` entries in each row, in columns that are
/// uniformly distributed.
///
/// # Errors
/// When the matrix does not fit into memory, and on interruption.
pub fn uniform(
    rows: u32,
    per_row: u32,
    seed: u64,
    memory: Option<u64>,
    control: &mut Control,
) -> Result<Csr, MatrixError> {
    let nonzeros = u64::from(rows) * u64::from(per_row);
    let needed = memory::matrix_bytes(rows.into(), nonzeros);
    memory::check("making a uniform matrix", needed, memory)?;
    let starts = starts(rows, control, |_| per_row.into())?;
    fill(starts, seed, control, |_, random, out| {
        fill::uniform(out, rows, random);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::control::quietly;

    #[test]
    fn a_band_is_full() {
        let of = |rows, half| quietly(|c| banded(rows, half, 1, None, c)).unwrap();
        let matrix = of(5, 1);
        assert_eq!(matrix.row_starts(), [0, 2, 5, 8, 11, 13]);
        assert_eq!(matrix.column_of(), [0, 1, 0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4]);
        assert!(
            matrix
                .values()
                .iter()
                .all(|value| (0.0..=1.0).contains(value))
        );
        assert_eq!(of(4, 0).nonzeros(), 4);
        assert_eq!(of(4, 1_000_000).nonzeros(), 16);
        assert_eq!(of(1, 3).nonzeros(), 1);
    }

    #[test]
    fn rows_are_as_long_as_asked_for() {
        let of = |rows, per_row| quietly(|c| uniform(rows, per_row, 1, None, c)).unwrap();
        let matrix = of(1009, 7);
        assert!((0..1009).all(|row| matrix.row_length(row) == 7));
        let middle = matrix.column_of().iter().filter(|c| **c < 504).count() as f64;
        assert!((0.47..0.53).contains(&(middle / 7063.0)));
        assert_eq!(of(5, 5).nonzeros(), 25);
        assert_eq!(of(5, 0).nonzeros(), 0);
    }

    #[test]
    fn what_has_no_room_is_not_begun() {
        let error = quietly(|c| banded(1000, 3, 1, Some(50_000), c)).unwrap_err();
        assert!(matches!(error, MatrixError::Memory { needed, .. } if needed == 8008 + 6988 * 12));
        let error = quietly(|c| uniform(i32::MAX as u32, 1 << 30, 1, None, c)).unwrap_err();
        assert!(matches!(error, MatrixError::Memory { .. }));
    }
}

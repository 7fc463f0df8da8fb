//! Generators of matrices: with the power law of R-MAT, banded, and with uniformly distributed columns.

use super::fill::{self, Random, fill, starts};
use crate::matrix::MatrixError;
use crate::matrix::assemble::{Entries, Mirror, assemble};
use crate::matrix::control::Control;
use crate::matrix::csr::{self, Csr};
use crate::matrix::rows::map;

/// Probabilities of the quarters of a matrix, as in Graph 500: top left, top right,
/// bottom left. The bottom right has the rest.
const QUARTERS: [f64; 3] = [0.57, 0.19, 0.19];

/// Entries that a thread draws at a time.
const PIECE: u64 = 1 << 18;

/// A matrix of `2^scale` rows and columns, with `per_row` draws for each row on
/// average. Draws of the same entry are summed, so fewer entries remain.
///
/// # Errors
/// When the matrix does not fit into memory, and on interruption.
pub fn rmat(
    scale: u32,
    per_row: u32,
    seed: u64,
    memory: Option<u64>,
    control: &mut Control,
) -> Result<Csr, MatrixError> {
    let rows = 1u32 << scale;
    let drawn = u64::from(rows) * u64::from(per_row);
    let entry = (2 * size_of::<u32>() + size_of::<f64>()) as u64;
    let needed = (csr::matrix_bytes(rows.into(), drawn))
        .saturating_add(drawn.saturating_mul(entry))
        .saturating_add(csr::starts_bytes(rows.into()));
    csr::check_memory("making an R-MAT matrix", needed, memory)?;
    let pieces = (0..drawn.div_ceil(PIECE)).collect();
    let parts = map(pieces, "generating", control, |piece| {
        let mut random = Random::of(seed, piece);
        let count = (drawn - piece * PIECE).min(PIECE);
        let room = count as usize;
        let mut entries = Entries {
            rows: Vec::with_capacity(room),
            columns: Vec::with_capacity(room),
            values: Vec::with_capacity(room),
        };
        for _ in 0..count {
            let (row, column) = place(scale, &mut random);
            entries.rows.push(row);
            entries.columns.push(column);
            entries.values.push(random.unit());
        }
        entries
    })?;
    assemble(rows, rows, parts, Mirror::No, control)
}

/// Draws the row and column of an entry: a quarter, a quarter of that, and so on.
fn place(scale: u32, random: &mut Random) -> (u32, u32) {
    let [a, b, c] = QUARTERS;
    let (mut row, mut column) = (0, 0);
    for _ in 0..scale {
        let draw = random.unit();
        let (down, right) = match draw {
            _ if draw <= a => (0, 0),
            _ if draw <= a + b => (0, 1),
            _ if draw <= a + b + c => (1, 0),
            _ => (1, 1),
        };
        (row, column) = (row << 1 | down, column << 1 | right);
    }
    (row, column)
}

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
    let needed = csr::matrix_bytes(rows.into(), nonzeros);
    csr::check_memory("making a banded matrix", needed, memory)?;
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
    let needed = csr::matrix_bytes(rows.into(), nonzeros);
    csr::check_memory("making a uniform matrix", needed, memory)?;
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
    fn quarters_have_their_shares_and_rows_are_unlike() {
        let matrix = quietly(|control| rmat(12, 16, 1, None, control)).unwrap();
        assert_eq!((matrix.rows(), matrix.columns()), (4096, 4096));
        let drawn = 4096.0 * 16.0;
        assert!(matrix.nonzeros() < 4096 * 16 && matrix.nonzeros() as f64 > 0.7 * drawn);
        let upper = matrix.row_starts()[2048] as f64 / matrix.nonzeros() as f64;
        assert!((0.68..0.78).contains(&upper), "{upper}");
        let longest = (0..4096).map(|row| matrix.row_length(row)).max();
        assert!(longest > Some(500), "{longest:?}");
        // What is drawn twice is added, so the sum of all values stays.
        let sum: f64 = matrix.values().iter().sum();
        assert!((sum / drawn - 0.5).abs() < 0.01, "{sum}");
    }

    #[test]
    fn the_smallest_have_a_single_row() {
        let matrix = quietly(|control| rmat(0, 3, 1, None, control)).unwrap();
        assert_eq!((matrix.rows(), matrix.nonzeros()), (1, 1));
        assert_eq!(quietly(|c| rmat(3, 0, 1, None, c)).unwrap().nonzeros(), 0);
    }

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

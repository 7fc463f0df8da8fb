//! Generates power-law matrices by R-MAT: D. Chakrabarti, Y. Zhan, C. Faloutsos: *R-MAT: A
//! Recursive Model for Graph Mining*, SIAM Data Mining 2004.

use super::fill::Random;
use crate::matrix::assemble::{Entries, Mirror, assemble};
use crate::matrix::control::Control;
use crate::matrix::csr::Csr;
use crate::matrix::rows::map;
use crate::matrix::{MatrixError, memory};

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
    let needed = (memory::matrix_bytes(rows.into(), drawn))
        .saturating_add(drawn.saturating_mul(entry))
        .saturating_add(memory::starts_bytes(rows.into()));
    memory::check("making an R-MAT matrix", needed, memory)?;
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
}

//! Whether a factored matrix was positive definite.

use crate::codelet::Precision;
use crate::graph::DatumId;
use crate::verify::numbers;
use crate::workload::task_set::{Matrix, TiledGraph};

/// The first row whose pivot was not positive, if any, by the diagonal of the factor:
/// the square roots of pivots. `read` gives a tile's bytes.
///
/// # Errors
/// Those of `read`.
pub fn first_bad<E>(
    tiled: &TiledGraph,
    precision: Precision,
    mut read: impl FnMut(DatumId) -> Result<Vec<u8>, E>,
) -> Result<Option<u64>, E> {
    let diagonal = tiled
        .of(Matrix::L)
        .filter(|(tile, _)| tile.place.0 == tile.place.1);
    for (tile, datum) in diagonal {
        let numbers = numbers(&read(*datum)?, precision);
        let columns = (tile.columns.end - tile.columns.start) as usize;
        let roots = numbers.iter().step_by(columns + 1);
        let bad = roots.zip(tile.rows.clone()).find(|(root, _)| {
            // Not a number where the pivot was negative.
            !(root.is_finite() && **root > 0.0)
        });
        if let Some((_, row)) = bad {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

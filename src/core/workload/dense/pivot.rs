//! Whether a factored matrix was positive definite.

use thiserror::Error;

use crate::codelet::Precision;
use crate::graph::DatumId;
use crate::verify::numbers;
use crate::workload::task_set::{Matrix, TiledGraph};

/// Why a matrix has no factor. Rows and columns are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum NoFactor {
    #[error(
        "the matrix is not positive definite: the pivot of row {row} (counted from 0) is not \
         positive; give a positive definite one, or f64 instead of f32"
    )]
    Pivot { row: u64 },

    #[error(
        "the matrix has {number} in row {row} and column {column} (counted from 0), and so no \
         factor; give finite numbers on its diagonal and below"
    )]
    NotFinite { row: u64, column: u64, number: f64 },
}

/// Why a matrix had no factor, if so, by what came of it and by what was given.
///
/// # Errors
/// Those of `read`, which gives a tile's bytes.
pub fn no_factor<E>(
    tiled: &TiledGraph,
    precision: Precision,
    read: impl FnMut(DatumId) -> Result<Vec<u8>, E>,
) -> Result<Option<NoFactor>, E> {
    let Some(row) = first_bad(tiled, precision, read)? else {
        return Ok(None);
    };
    let given = not_finite(tiled, precision);
    Ok(Some(given.unwrap_or(NoFactor::Pivot { row })))
}

/// The first number of the given matrix, by rows, that is infinite or none, if any.
fn not_finite(tiled: &TiledGraph, precision: Precision) -> Option<NoFactor> {
    let mut first: Option<(u64, u64, f64)> = None;
    for (tile, datum) in tiled.of(Matrix::A) {
        let datum = tiled.graph.datum(*datum);
        let mut bytes = vec![0; datum.bytes as usize];
        datum.contents.as_ref()?.write(&mut bytes);
        let (numbers, width) = (
            numbers(&bytes, precision),
            tile.columns.end - tile.columns.start,
        );
        let places = (0..).map(|at| {
            (
                tile.rows.start + at / width,
                tile.columns.start + at % width,
            )
        });
        let mut below = places
            .zip(numbers)
            .filter(|((row, column), _)| column <= row);
        let found = below.find(|(_, number)| !number.is_finite());
        if let Some(((row, column), number)) = found
            && first.is_none_or(|(of, at, _)| (row, column) < (of, at))
        {
            first = Some((row, column, number));
        }
    }
    first.map(|(row, column, number)| NoFactor::NotFinite {
        row,
        column,
        number,
    })
}

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

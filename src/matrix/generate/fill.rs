//! A matrix of rows of given lengths, made row by row on all cores.

use std::mem::take;

use super::random::Random;
use crate::matrix::control::Control;
use crate::matrix::csr::Csr;
use crate::matrix::error::MatrixError;
use crate::matrix::memory::{self, zeros};
use crate::matrix::parallel::each;

/// Entries that a thread makes at a time, unless a row has more.
const PIECE: u64 = 1 << 18;

/// Keeps the sequences of values and of columns apart.
const VALUES: u64 = 0x7661_6c75_6573;

/// What is to be made.
pub struct Plan {
    pub rows: u32,
    pub columns: u32,
    pub seed: u64,
    /// Where each row starts, and where the last one ends.
    pub starts: Vec<u64>,
}

/// Some rows, and where their entries go.
struct Piece<'a> {
    first: u32,
    starts: &'a [u64],
    column_of: &'a mut [u32],
    values: &'a mut [f64],
}

/// Makes a matrix. `row` fills in a row's columns, ascending and each once, from
/// random numbers of that row alone; values are uniform in (0, 1].
///
/// # Errors
/// When memory is refused, or on request.
pub fn fill(
    plan: Plan,
    control: &mut Control,
    row: impl Fn(u32, &mut Random, &mut [u32]) + Sync,
) -> Result<Csr, MatrixError> {
    let Plan {
        rows,
        columns,
        seed,
        starts,
    } = plan;
    let total = starts.last().copied().unwrap_or(0);
    let mut column_of = zeros::<u32>(total)?;
    let mut values = zeros::<f64>(total)?;
    let pieces = divide(&starts, &mut column_of, &mut values);
    each(pieces, "generating", control, |piece| {
        let base = piece.starts[0];
        for (index, bounds) in (piece.first..).zip(piece.starts.windows(2)) {
            let places = (bounds[0] - base) as usize..(bounds[1] - base) as usize;
            let mut random = Random::of(seed, index.into());
            row(index, &mut random, &mut piece.column_of[places.clone()]);
            let mut random = Random::of(seed ^ VALUES, index.into());
            piece.values[places].fill_with(|| random.unit());
        }
    })?;
    Ok(Csr::new(rows, columns, starts, column_of, values)?)
}

/// Row starts from the lengths of the rows.
///
/// # Errors
/// When memory is refused, or on request.
pub fn starts(
    rows: u32,
    control: &mut Control,
    length: impl Fn(u32) -> u64 + Sync,
) -> Result<Vec<u64>, MatrixError> {
    let mut starts = zeros::<u64>(u64::from(rows) + 1)?;
    let step = PIECE as usize;
    let pieces = (0u32..).step_by(step).zip(starts[1..].chunks_mut(step));
    each(
        pieces.collect(),
        "measuring",
        control,
        |(first, lengths)| {
            for (row, slot) in (first..).zip(lengths) {
                *slot = length(row);
            }
        },
    )?;
    for row in 1..starts.len() {
        starts[row] += starts[row - 1];
    }
    Ok(starts)
}

/// Checks that a matrix to be made has room, before anything is.
///
/// # Errors
/// With what it needs and what there is.
pub fn check_room(
    what: &str,
    rows: u64,
    nonzeros: u64,
    memory: Option<u64>,
) -> Result<(), MatrixError> {
    memory::check(
        &format!("making {what}"),
        memory::of_matrix(rows, nonzeros),
        memory,
    )
}

fn divide<'a>(
    starts: &'a [u64],
    mut column_of: &'a mut [u32],
    mut values: &'a mut [f64],
) -> Vec<Piece<'a>> {
    let mut pieces = Vec::new();
    let (mut first, rows) = (0, starts.len() - 1);
    while first < rows {
        let most = starts[first] + PIECE;
        let end = starts.partition_point(|start| *start <= most) - 1;
        // At least one row, and not too many empty ones.
        let end = end.clamp(first + 1, first + PIECE as usize).min(rows);
        let entries = (starts[end] - starts[first]) as usize;
        let (mine, rest) = take(&mut column_of).split_at_mut(entries);
        column_of = rest;
        let (my_values, rest) = take(&mut values).split_at_mut(entries);
        values = rest;
        pieces.push(Piece {
            first: first as u32,
            starts: &starts[first..=end],
            column_of: mine,
            values: my_values,
        });
        first = end;
    }
    pieces
}

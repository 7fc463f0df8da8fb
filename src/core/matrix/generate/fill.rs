//! Fills a square matrix whose row lengths are given, row by row on all cores.

use super::random::Random;
use crate::matrix::control::Control;
use crate::matrix::csr::Csr;
use crate::matrix::error::MatrixError;
use crate::matrix::memory::zeros;
use crate::matrix::parallel::map;
use crate::matrix::rows::{accumulate, divide};

/// Entries, or rows, that a thread fills at a time. A longer row is filled at once.
const PIECE: u64 = 1 << 18;

/// Changes the seed for values, so that they are independent of the columns.
const VALUES: u64 = 0x7661_6c75_6573;

/// Makes a square matrix with these row starts. `row` writes the columns of a row,
/// ascending and each once, and draws from random numbers of that row alone. Values
/// are uniform in (0, 1].
///
/// # Errors
/// When memory is refused, and on interruption.
pub fn fill(
    starts: Vec<u64>,
    seed: u64,
    control: &mut Control,
    row: impl Fn(u32, &mut Random, &mut [u32]) + Sync,
) -> Result<Csr, MatrixError> {
    let rows = (starts.len() - 1) as u32;
    let total = starts.last().copied().unwrap_or(0);
    let mut column_of = zeros::<u32>(total)?;
    let mut values = zeros::<f64>(total)?;
    let blocks = divide(&starts, &mut column_of, &mut values, |first| {
        let most = starts[first] + PIECE;
        let end = starts.partition_point(|start| *start <= most) - 1;
        // Empty rows take time, too.
        end.min(first + PIECE as usize)
    });
    map(blocks, "generating", control, |block| {
        for (index, entries) in block.rows() {
            let mut random = Random::of(seed, index.into());
            row(index, &mut random, &mut block.column_of[entries.clone()]);
            let mut random = Random::of(seed ^ VALUES, index.into());
            block.values[entries].fill_with(|| random.unit());
        }
    })?;
    Ok(Csr::new(rows, rows, starts, column_of, values)?)
}

/// The row starts of rows whose lengths `length` gives.
///
/// # Errors
/// When memory is refused, and on interruption.
pub fn starts(
    rows: u32,
    control: &mut Control,
    length: impl Fn(u32) -> u64 + Sync,
) -> Result<Vec<u64>, MatrixError> {
    let mut starts = zeros::<u64>(u64::from(rows) + 1)?;
    let step = PIECE as usize;
    let pieces = (0u32..).step_by(step).zip(starts[1..].chunks_mut(step));
    map(
        pieces.collect(),
        "measuring",
        control,
        |(first, lengths)| {
            for (row, slot) in (first..).zip(lengths) {
                *slot = length(row);
            }
        },
    )?;
    accumulate(&mut starts);
    Ok(starts)
}

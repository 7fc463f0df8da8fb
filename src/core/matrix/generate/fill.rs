//! Fills a square matrix whose row lengths are given, row by row on all cores.

use crate::matrix::MatrixError;
use crate::matrix::control::Control;
use crate::matrix::csr::{Csr, zeros};
use crate::matrix::rows::{accumulate, divide, map};
use crate::random::mixed;

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

/// Rounds of draws, after which neighbours of the columns drawn make up the rest.
const ROUNDS: u32 = 12;

/// Fills `out` with different columns from `draw`, ascending. `out` must not be longer
/// than the matrix has columns. Where draws repeat too often, neighbours of the
/// columns drawn make up the rest.
pub fn distinct(out: &mut [u32], columns: u32, mut draw: impl FnMut() -> u32) {
    distinct_beside(out, 0, columns, &mut draw);
}

/// As [`distinct`], where `out` begins with `given` different columns in any order.
pub fn distinct_beside(out: &mut [u32], given: usize, columns: u32, mut draw: impl FnMut() -> u32) {
    let mut have = given;
    for _ in 0..ROUNDS {
        out[have..].fill_with(&mut draw);
        out.sort_unstable();
        have = keep_different(out);
        if have == out.len() {
            return;
        }
    }
    add_neighbours(out, have, columns);
}

/// Fills `out` with different columns, ascending, all equally likely.
pub fn uniform(out: &mut [u32], columns: u32, random: &mut Random) {
    let many = out.len() as u64 > u64::from(columns) / 8;
    if !many {
        return distinct(out, columns, || random.below(columns));
    }
    // Each column is taken with the probability of the columns still needed among
    // those left (Knuth, volume 2, 3.4.2, algorithm S).
    let mut taken = 0;
    for column in 0..columns {
        let left = (out.len() - taken) as u32;
        if left == 0 {
            return;
        }
        if random.below(columns - column) < left {
            out[taken] = column;
            taken += 1;
        }
    }
}

/// Moves the different columns of a sorted list to its front, and returns their number.
fn keep_different(sorted: &mut [u32]) -> usize {
    let mut kept = 0;
    for i in 0..sorted.len() {
        if kept == 0 || sorted[i] != sorted[kept - 1] {
            sorted[kept] = sorted[i];
            kept += 1;
        }
    }
    kept
}

/// Completes `out`, whose first `have` columns are sorted, with the columns that follow
/// the middle one and are not in it.
fn add_neighbours(out: &mut [u32], have: usize, columns: u32) {
    let (old, new) = out.split_at_mut(have);
    let mut next = old.get(have / 2).copied().unwrap_or(0);
    for slot in new {
        while old.binary_search(&next).is_ok() {
            next = (next + 1) % columns;
        }
        *slot = next;
        next = (next + 1) % columns;
    }
    out.sort_unstable();
}

// Random numbers that are the same on every machine and for every number of threads:
// each row has its own sequence (splitmix64).

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence number `stream` of a seed.
    pub fn of(seed: u64, stream: u64) -> Self {
        let state = mix(seed.wrapping_add(mix(stream)));
        Self { state }
    }

    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Uniform in `0..below`; 0 if that is empty.
    pub fn below(&mut self, below: u32) -> u32 {
        ((u128::from(self.next()) * u128::from(below)) >> 64) as u32
    }

    /// Uniform in (0, 1].
    pub fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() <= probability
    }
}

/// A number of which every bit depends on every bit of another.
pub fn mix(bits: u64) -> u64 {
    mixed(bits.wrapping_add(0x9e37_79b9_7f4a_7c15))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ascending(columns: &[u32], below: u32) -> bool {
        columns.is_sorted_by(|a, b| a < b) && columns.last().is_none_or(|last| *last < below)
    }

    proptest! {
        #[test]
        fn columns_ascend_whatever_is_drawn(
            columns in 1u32..200,
            fill in 0.0f64..=1.0,
            range in 1u32..200,
            seed in 0u64..1000,
        ) {
            let length = (f64::from(columns) * fill) as usize;
            let mut random = Random::of(seed, 0);
            let mut out = vec![0; length];
            distinct(&mut out, columns, || random.below(range.min(columns)));
            prop_assert!(ascending(&out, columns), "{out:?}");
            out.fill(0);
            uniform(&mut out, columns, &mut random);
            prop_assert!(ascending(&out, columns), "{out:?}");
        }
    }

    #[test]
    fn given_columns_stay() {
        let mut out = [9, 2, 0, 0, 0];
        let mut random = Random::of(1, 1);
        distinct_beside(&mut out, 2, 10, || random.below(10));
        assert!(ascending(&out, 10) && out.contains(&9) && out.contains(&2));
    }

    #[test]
    fn uniform_columns_are_even() {
        let mut counts = [0u32; 20];
        for stream in 0..4000 {
            let mut out = [0; 5];
            uniform(&mut out, 20, &mut Random::of(3, stream));
            out.iter().for_each(|column| counts[*column as usize] += 1);
        }
        assert!(
            counts.iter().all(|count| (900..1100).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn sequences_are_reproducible_and_unlike() {
        let first = |seed, stream| Random::of(seed, stream).next();
        assert_eq!(first(1, 2), first(1, 2));
        let all = [
            first(1, 2),
            first(2, 1),
            first(1, 3),
            first(2, 2),
            first(0, 0),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|b| a != b));
        }
    }

    /// Whoever has made a matrix with a seed makes it again with the next
    /// version.
    #[test]
    fn sequences_stay_what_they_were() {
        let mut random = Random::of(1, 0);
        assert_eq!(random.next(), 3_032_427_185_751_592_386);
        assert_eq!(random.below(1000), 978);
    }

    #[test]
    fn draws_fill_their_range() {
        let mut random = Random::of(7, 0);
        let mut counts = [0u32; 10];
        for _ in 0..10_000 {
            counts[random.below(10) as usize] += 1;
            let unit = random.unit();
            assert!(unit > 0.0 && unit <= 1.0);
        }
        assert!(
            counts.iter().all(|count| (850..1150).contains(count)),
            "{counts:?}"
        );
        assert_eq!(random.below(0), 0);
        let hits = (0..10_000).filter(|_| random.chance(0.25)).count();
        assert!((2300..2700).contains(&hits), "{hits}");
    }
}

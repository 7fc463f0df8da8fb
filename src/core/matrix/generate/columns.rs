//! Draws the columns of a row: as many different ones as the row has entries.

use super::random::Random;

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
}

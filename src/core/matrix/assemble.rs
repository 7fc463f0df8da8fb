//! Converts a matrix's entries, in any order, to compressed sparse rows.
//!
//! Each thread has a range of rows. It reads all entries and stores those of its rows,
//! so two threads never write the same memory, and the entries of a row keep their
//! order. Duplicates are therefore summed in the same order for any number of threads.

use std::ops::Range;

use super::MatrixError;
use super::control::Control;
use super::csr::{Csr, zeros};
use super::rows::{RowBlock, accumulate, divide, map, threads};

/// A part of a matrix's entries, with indices from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entries {
    pub rows: Vec<u32>,
    pub columns: Vec<u32>,
    /// As many values as rows, or none if all values are 1.
    pub values: Vec<f64>,
}

/// Whether each entry off the diagonal also defines the mirrored entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mirror {
    No,
    Same,
    /// With the sign changed.
    Negated,
}

/// Fewest entries of a thread; for fewer, its start costs more than it saves.
const LEAST_SHARE: u64 = 1 << 16;

/// Makes a matrix of entries. Entries of the same row and column are summed. Rows
/// must lie within the matrix; a matrix with mirrored entries must be square.
///
/// # Errors
/// When memory is refused or a column lies outside the matrix, and on interruption.
pub fn assemble(
    rows: u32,
    columns: u32,
    parts: Vec<Entries>,
    mirror: Mirror,
    control: &mut Control,
) -> Result<Csr, MatrixError> {
    let found: u64 = parts.iter().map(|part| part.rows.len() as u64).sum();
    let shares = (found / LEAST_SHARE).clamp(1, threads() as u64);
    let mut starts = zeros::<u64>(u64::from(rows) + 1)?;
    count(&mut starts[1..], &parts, mirror, shares, control)?;
    accumulate(&mut starts);
    let total = starts.last().copied().unwrap_or(0);
    let mut column_of = zeros::<u32>(total)?;
    let mut values = zeros::<f64>(total)?;
    let blocks = divide_evenly(&starts, &mut column_of, &mut values, shares);
    let shortened = map(blocks, "sorting", control, |block| {
        fill(block, &parts, mirror)
    })?;
    drop(parts);
    let shortened: Vec<Shortened> = shortened.into_iter().flatten().collect();
    if !shortened.is_empty() {
        close_gaps(&shortened, &mut starts, &mut column_of, &mut values);
    }
    Ok(Csr::new(rows, columns, starts, column_of, values)?)
}

/// Calls `act` with row, column and value of each entry whose row is one of
/// `rows`.
fn visit(parts: &[Entries], mirror: Mirror, rows: &Range<u32>, mut act: impl FnMut(u32, u32, f64)) {
    let sign = if mirror == Mirror::Negated { -1.0 } else { 1.0 };
    for part in parts {
        for (i, (&row, &column)) in part.rows.iter().zip(&part.columns).enumerate() {
            let value = || part.values.get(i).copied().unwrap_or(1.0);
            if rows.contains(&row) {
                act(row, column, value());
            }
            if mirror != Mirror::No && row != column && rows.contains(&column) {
                act(column, row, sign * value());
            }
        }
    }
}

/// Counts the entries of each row.
fn count(
    lengths: &mut [u64],
    parts: &[Entries],
    mirror: Mirror,
    shares: u64,
    control: &mut Control,
) -> Result<(), MatrixError> {
    let each_share = (lengths.len() as u64).div_ceil(shares).max(1) as usize;
    let pieces = (0u32..)
        .step_by(each_share)
        .zip(lengths.chunks_mut(each_share))
        .collect();
    map(pieces, "counting", control, |(first, lengths)| {
        let rows = first..first + lengths.len() as u32;
        visit(parts, mirror, &rows, |row, _, _| {
            lengths[(row - first) as usize] += 1;
        });
    })?;
    Ok(())
}

/// Divides the arrays into blocks with about the same number of entries.
fn divide_evenly<'a>(
    starts: &'a [u64],
    column_of: &'a mut [u32],
    values: &'a mut [f64],
    shares: u64,
) -> Vec<RowBlock<'a>> {
    let rows = starts.len() - 1;
    let total = starts.last().copied().unwrap_or(0);
    // A row across a border belongs to the block before the border.
    let mut borders = (1..shares).map(|share| {
        let border = u128::from(total) * u128::from(share) / u128::from(shares);
        starts.partition_point(|start| u128::from(*start) < border)
    });
    divide(starts, column_of, values, |first| {
        borders.find(|end| *end > first).unwrap_or(rows)
    })
}

/// A row that has fewer entries than it had before duplicates were summed.
struct Shortened {
    row: u32,
    kept: u64,
}

/// Writes the entries of a block, sorts each row, and returns the rows that had
/// duplicates.
fn fill(block: RowBlock<'_>, parts: &[Entries], mirror: Mirror) -> Vec<Shortened> {
    let mut next: Vec<usize> = block.rows().map(|(_, entries)| entries.start).collect();
    let rows = block.first..block.first + next.len() as u32;
    visit(parts, mirror, &rows, |row, column, value| {
        let place = &mut next[(row - rows.start) as usize];
        block.column_of[*place] = column;
        block.values[*place] = value;
        *place += 1;
    });
    let mut shortened = Vec::new();
    for (row, entries) in block.rows() {
        let length = entries.len();
        let (columns, values) = (
            &mut block.column_of[entries.clone()],
            &mut block.values[entries],
        );
        let kept = settle(columns, values);
        if kept < length {
            let kept = kept as u64;
            shortened.push(Shortened { row, kept });
        }
    }
    shortened
}

/// Sorts a row by column and sums entries of the same column, in their order. Returns
/// the number of entries that remain, at the front.
fn settle(column_of: &mut [u32], values: &mut [f64]) -> usize {
    if column_of.is_sorted_by(|a, b| a < b) {
        return column_of.len();
    }
    let mut row: Vec<(u32, f64)> = (column_of.iter().copied())
        .zip(values.iter().copied())
        .collect();
    row.sort_by_key(|(column, _)| *column);
    row.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    for (i, (column, value)) in row.iter().enumerate() {
        (column_of[i], values[i]) = (*column, *value);
    }
    row.len()
}

/// Closes the gaps behind shortened rows.
fn close_gaps(
    shortened: &[Shortened],
    starts: &mut [u64],
    column_of: &mut Vec<u32>,
    values: &mut Vec<f64>,
) {
    let mut shortened = shortened.iter().peekable();
    let (mut from, mut to) = (starts[0], 0);
    for row in 0..starts.len() - 1 {
        let end = starts[row + 1];
        let of_row = shortened.next_if(|each| each.row as usize == row);
        let kept = of_row.map_or(end - from, |each| each.kept);
        let moved = from as usize..(from + kept) as usize;
        column_of.copy_within(moved.clone(), to as usize);
        values.copy_within(moved, to as usize);
        to += kept;
        from = end;
        starts[row + 1] = to;
    }
    column_of.truncate(to as usize);
    values.truncate(to as usize);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::matrix::control::quietly;

    fn built(rows: u32, columns: u32, parts: Vec<Entries>, mirror: Mirror) -> Csr {
        quietly(|control| assemble(rows, columns, parts, mirror, control)).unwrap()
    }

    fn entries(list: &[(u32, u32, f64)]) -> Entries {
        Entries {
            rows: list.iter().map(|entry| entry.0).collect(),
            columns: list.iter().map(|entry| entry.1).collect(),
            values: list.iter().map(|entry| entry.2).collect(),
        }
    }

    #[test]
    fn entries_are_sorted_and_duplicates_summed_across_parts() {
        let parts = vec![
            entries(&[(2, 1, 1.0), (0, 3, 2.0), (0, 0, 3.0)]),
            Entries::default(),
            entries(&[(2, 1, 4.0), (0, 3, -2.0)]),
        ];
        let matrix = built(4, 4, parts, Mirror::No);
        let expected = Csr::new(
            4,
            4,
            vec![0, 2, 2, 3, 3],
            vec![0, 3, 1],
            vec![3.0, 0.0, 5.0],
        );
        assert_eq!(Ok(matrix), expected);
    }

    #[test]
    fn a_triangle_is_mirrored_and_its_diagonal_is_not() {
        let parts = || vec![entries(&[(0, 0, 1.0), (1, 0, 2.0), (2, 1, 3.0)])];
        let same = built(3, 3, parts(), Mirror::Same);
        assert_eq!(same.row_starts(), [0, 2, 4, 5]);
        assert_eq!(same.column_of(), [0, 1, 0, 2, 1]);
        assert_eq!(same.values(), [1.0, 2.0, 2.0, 3.0, 3.0]);
        let negated = built(3, 3, parts(), Mirror::Negated);
        assert_eq!(negated.values(), [1.0, -2.0, 2.0, -3.0, 3.0]);
    }

    #[test]
    fn without_values_all_are_one() {
        let pattern = Entries {
            values: Vec::new(),
            ..entries(&[(0, 1, 7.0), (1, 0, 7.0), (0, 1, 7.0)])
        };
        let matrix = built(2, 2, vec![pattern], Mirror::No);
        assert_eq!(matrix.values(), [2.0, 1.0]);
    }

    #[test]
    fn a_column_outside_the_matrix_is_refused() {
        let parts = vec![entries(&[(0, 5, 1.0)])];
        let result = quietly(|control| assemble(2, 2, parts, Mirror::No, control));
        assert!(matches!(result, Err(MatrixError::Csr(_))));
        assert_eq!(built(0, 0, Vec::new(), Mirror::Same).nonzeros(), 0);
    }

    /// Several threads assemble rows of very different length.
    #[test]
    fn many_entries_have_the_sums_of_a_map() {
        let mut random = 1u64;
        let mut draw = |below: u32| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
            ((random >> 33) % u64::from(below)) as u32
        };
        let list: Vec<(u32, u32, f64)> = (0..4 * LEAST_SHARE)
            .map(|i| {
                let row = if i % 3 == 0 { 7 } else { draw(1000) };
                (row, draw(2000), f64::from(draw(1 << 20)))
            })
            .collect();
        let mut map = BTreeMap::new();
        for (row, column, value) in &list {
            *map.entry((*row, *column)).or_insert(0.0) += value;
        }
        let parts = list.chunks(10_007).map(entries).collect();
        let matrix = built(1001, 2000, parts, Mirror::No);
        assert_eq!(matrix.nonzeros(), map.len() as u64);
        let columns: Vec<u32> = map.keys().map(|(_, column)| *column).collect();
        let values: Vec<f64> = map.values().copied().collect();
        assert_eq!(
            (matrix.column_of(), matrix.values()),
            (&columns[..], &values[..])
        );
        assert_eq!(matrix.row_length(1000), 0);
    }

    proptest! {
        #[test]
        fn blocks_hold_every_row_once(lengths in prop::collection::vec(0u64..20, 0..60), shares in 1u64..9) {
            let starts: Vec<u64> = [0].into_iter()
                .chain(lengths.iter().scan(0, |sum, length| { *sum += length; Some(*sum) }))
                .collect();
            let total = *starts.last().unwrap() as usize;
            let (mut column_of, mut values) = (vec![0; total], vec![0.0; total]);
            let mut next = 0;
            for block in divide_evenly(&starts, &mut column_of, &mut values, shares) {
                prop_assert_eq!(block.first, next);
                let rows = block.starts.len() as u32 - 1;
                prop_assert!(rows > 0);
                let entries = block.starts[rows as usize] - block.starts[0];
                prop_assert_eq!(block.column_of.len() as u64, entries);
                prop_assert_eq!(block.values.len() as u64, entries);
                next += rows;
            }
            prop_assert_eq!(next as usize, lengths.len());
        }
    }
}

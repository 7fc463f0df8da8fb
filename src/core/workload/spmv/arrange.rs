//! The order of a sparse matrix's rows for a product with a vector, and their division
//! into units. Pure arithmetic on row lengths.
//!
//! *Irregular* rows, which are longer than most, come first. They are in priority
//! groups of similar length, the longest first. The regular rows follow in the
//! matrix's order, so that neighbours stay neighbours. A device that takes units from
//! the beginning gets irregular rows, and one that takes them from the end regular
//! rows. Source: the PDAWL paper, section 4.1, steps 1 to 3.
//!
//! Units have about equal weight: the sum of their entries and rows. A row that is too
//! long for a unit is cut into pieces, each a unit of its own. The longest rows come
//! first, so all pieces do.

use std::ops::Range;

use crate::codelet::spmv::UNIT_WEIGHT;

/// The default part of the rows that are irregular: the paper's 30 %.
pub const IRREGULAR: f64 = 0.3;

/// The number of units of a small matrix, enough to divide it among devices.
const UNITS: u64 = 4096;

/// The least weight of a unit. The fixed cost of a lighter unit is significant.
const LEAST_WEIGHT: u64 = 64;

/// Rows in the order in which they are computed, and their units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrangement {
    row_of: Vec<u32>,
    unit_entries: Vec<u64>,
    unit_rows: Vec<u32>,
    pieces: u32,
    groups: Vec<Group>,
}

/// Irregular rows of similar length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Their places in the order.
    pub rows: Range<u32>,
    /// Each row has at least this number of entries, and less than twice as many.
    pub least: u64,
}

impl Arrangement {
    /// Arranges the rows that start at `row_starts` (one more at the end).
    /// `irregular` is the part of them, from 0 to 1, that may be irregular; rows as
    /// long as the longest regular one are not. `weight` is the weight of a unit, at
    /// most [`UNIT_WEIGHT`] and rounded down to a power of two; `None` derives it from
    /// the matrix.
    pub fn of(row_starts: &[u64], irregular: f64, weight: Option<u64>) -> Self {
        let rows = row_starts.len().saturating_sub(1);
        let total = row_starts.last().copied().unwrap_or(0) + rows as u64;
        let weight = weight
            .unwrap_or_else(|| (total / UNITS).next_power_of_two().max(LEAST_WEIGHT))
            .clamp(2, UNIT_WEIGHT);
        // With a power of two, rows that are cut and rows that are not are in
        // different groups.
        let weight = 1 << weight.ilog2();
        let longest = longest_regular(row_starts, irregular, weight);
        let (row_of, groups) = order(row_starts, longest);
        let mut arrangement = Self {
            row_of,
            unit_entries: vec![0],
            unit_rows: vec![0],
            pieces: 0,
            groups,
        };
        arrangement.divide(row_starts, weight);
        arrangement
    }

    /// Cuts the ordered rows into units.
    fn divide(&mut self, row_starts: &[u64], weight: u64) {
        let (mut entry, mut begun) = (0, 0);
        for at in 0..self.row_of.len() {
            let row = self.row_of[at] as usize;
            let length = row_starts[row + 1] - row_starts[row];
            if length >= weight {
                let pieces = length.div_ceil(weight);
                for piece in 1..=pieces {
                    let row = if piece == pieces { at + 1 } else { at };
                    // The product overflows 64 bits: a row may have 2^31 entries.
                    let end = u128::from(length) * u128::from(piece) / u128::from(pieces);
                    self.end_unit(entry + end as u64, row);
                }
                self.pieces += pieces as u32;
                entry += length;
                begun = 0;
                continue;
            }
            if begun + length + 1 > weight {
                self.end_unit(entry, at);
                begun = 0;
            }
            begun += length + 1;
            entry += length;
        }
        // An empty matrix is one empty unit.
        if begun > 0 || self.unit_rows.len() == 1 {
            self.end_unit(entry, self.row_of.len());
        }
    }

    fn end_unit(&mut self, entry: u64, row: usize) {
        self.unit_entries.push(entry);
        self.unit_rows.push(row as u32);
    }

    /// Units, at least 1.
    pub fn units(&self) -> u64 {
        self.unit_rows.len() as u64 - 1
    }

    /// The matrix's row at each place of the order.
    pub fn row_of(&self) -> &[u32] {
        &self.row_of
    }

    /// The first entry of each unit; one more at the end.
    pub fn unit_entries(&self) -> &[u64] {
        &self.unit_entries
    }

    /// The first row of each unit, as a place in the order; one more at the
    /// end. A long row belongs to its last piece.
    pub fn unit_rows(&self) -> &[u32] {
        &self.unit_rows
    }

    /// The number of pieces of long rows; they are the first units.
    pub fn pieces(&self) -> u32 {
        self.pieces
    }

    /// Whether the rows have the matrix's order and none is cut: its arrays are then those of
    /// the units.
    pub fn is_natural(&self) -> bool {
        self.pieces == 0 && self.groups.is_empty()
    }

    /// Entries of these units.
    pub fn entries(&self, units: &Range<u64>) -> Range<u64> {
        self.unit_entries[units.start as usize]..self.unit_entries[units.end as usize]
    }

    /// Rows of these units, as places in the order.
    pub fn rows(&self, units: &Range<u64>) -> Range<u32> {
        self.unit_rows[units.start as usize]..self.unit_rows[units.end as usize]
    }

    /// The rows that are cut into pieces: their places and their units.
    pub fn long_rows(&self) -> impl Iterator<Item = (u32, Range<u64>)> + '_ {
        let starts = &self.unit_rows[..self.pieces as usize];
        let mut first = 0;
        starts.chunk_by(|a, b| a == b).map(move |pieces| {
            let units = first..first + pieces.len() as u64;
            first = units.end;
            (pieces[0], units)
        })
    }
}

/// Entries of the longest regular row. At most the part `irregular` of the rows is
/// longer. Rows with the weight of a unit are never regular.
fn longest_regular(row_starts: &[u64], irregular: f64, weight: u64) -> u64 {
    let mut rows_of = vec![0u64; weight as usize];
    for pair in row_starts.windows(2) {
        if let Some(count) = rows_of.get_mut((pair[1] - pair[0]) as usize) {
            *count += 1;
        }
    }
    let rows = row_starts.len().saturating_sub(1) as f64;
    let regular = rows * (1.0 - irregular.clamp(0.0, 1.0));
    let mut counted = 0;
    let reached = rows_of.iter().position(|count| {
        counted += count;
        counted as f64 >= regular
    });
    reached.map_or(weight - 1, |length| length as u64)
}

/// The irregular rows by group, then the regular rows in the matrix's order.
fn order(row_starts: &[u64], longest_regular: u64) -> (Vec<u32>, Vec<Group>) {
    let length = |row: usize| row_starts[row + 1] - row_starts[row];
    let count = row_starts.len().saturating_sub(1);
    let mut levels: Vec<Vec<u32>> = vec![Vec::new(); u64::BITS as usize];
    let mut regular = Vec::new();
    for row in 0..count {
        match length(row) {
            length if length > longest_regular => {
                levels[length.ilog2() as usize].push(row as u32);
            }
            _ => regular.push(row as u32),
        }
    }
    let mut rows = Vec::with_capacity(count);
    let mut groups = Vec::new();
    for (level, members) in levels.iter().enumerate().rev() {
        if !members.is_empty() {
            let first = rows.len() as u32;
            rows.extend_from_slice(members);
            groups.push(Group {
                rows: first..rows.len() as u32,
                least: 1 << level,
            });
        }
    }
    rows.append(&mut regular);
    (rows, groups)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn starts(lengths: &[u64]) -> Vec<u64> {
        let mut at = 0;
        let ends = lengths.iter().map(|length| {
            at += length;
            at
        });
        std::iter::once(0).chain(ends).collect()
    }

    #[test]
    fn irregular_rows_come_first_in_groups_of_similar_length() {
        let lengths = [2, 9, 2, 33, 1, 12, 2, 2, 3, 2];
        let arranged = Arrangement::of(&starts(&lengths), 0.3, Some(16));
        // 33 is cut, 12 and 9 are in one group, and 3 is regular.
        assert_eq!(arranged.row_of(), [3, 1, 5, 0, 2, 4, 6, 7, 8, 9]);
        let groups: Vec<_> = (arranged.groups.iter())
            .map(|group| (group.rows.clone(), group.least))
            .collect();
        assert_eq!(groups, [(0..1, 32), (1..3, 8)]);
        assert_eq!(arranged.pieces(), 3);
        assert_eq!(arranged.long_rows().collect::<Vec<_>>(), [(0, 0..3)]);
        assert_eq!(arranged.unit_entries()[..5], [0, 11, 22, 33, 42]);
        assert_eq!(arranged.unit_rows()[..5], [0, 0, 0, 1, 2]);
    }

    #[test]
    fn equal_rows_keep_their_order() {
        let arranged = Arrangement::of(&starts(&[5; 100]), IRREGULAR, None);
        assert!(arranged.row_of().iter().copied().eq(0..100));
        assert!(arranged.groups.is_empty());
        // 64 is the least weight: ten rows of 5 + 1.
        assert_eq!(arranged.units(), 10);
    }

    #[test]
    fn a_matrix_without_entries_is_one_unit() {
        for (rows, lengths) in [(0, vec![]), (7, vec![0; 7])] {
            let arranged = Arrangement::of(&starts(&lengths), IRREGULAR, None);
            assert_eq!((arranged.units(), arranged.pieces()), (1, 0));
            assert_eq!(
                (arranged.rows(&(0..1)), arranged.entries(&(0..1))),
                (0..rows, 0..0)
            );
        }
    }

    #[test]
    fn the_part_that_is_irregular_can_be_chosen() {
        let lengths: Vec<u64> = (1..=100).collect();
        for (part, first_regular) in [(0.0, 0), (0.3, 30), (1.0, 100)] {
            let arranged = Arrangement::of(&starts(&lengths), part, Some(2048));
            let irregular = arranged.groups.last().map_or(0, |group| group.rows.end);
            assert_eq!(irregular, first_regular, "{part}");
        }
    }

    proptest! {
        #[test]
        fn every_row_and_entry_is_in_one_unit_of_bounded_weight(
            lengths in proptest::collection::vec(
                prop_oneof![4 => 0u64..6, 2 => 0u64..70, 1 => 0u64..900], 0..150),
            irregular in 0.0f64..1.0,
            weight in 2u64..80,
        ) {
            let starts = starts(&lengths);
            let arranged = Arrangement::of(&starts, irregular, Some(weight));
            let weight = 1 << weight.ilog2();
            let mut rows = arranged.row_of().to_vec();
            rows.sort_unstable();
            prop_assert!(rows.into_iter().eq(0..lengths.len() as u32));
            let mut entries = 0;
            for unit in 0..arranged.units() {
                let (e, r) = (arranged.entries(&(unit..unit + 1)), arranged.rows(&(unit..unit + 1)));
                prop_assert!(e.start == entries && e.end >= e.start);
                entries = e.end;
                let count = e.end - e.start;
                if unit < u64::from(arranged.pieces()) {
                    prop_assert!(count <= weight && count > 0);
                    continue;
                }
                let whole: u64 = r.clone().map(|at| lengths[arranged.row_of()[at as usize] as usize]).sum();
                prop_assert_eq!(whole, count);
                prop_assert!(count + u64::from(r.end - r.start) <= weight || lengths.is_empty());
            }
            prop_assert_eq!(entries, starts[lengths.len()]);
            for (at, units) in arranged.long_rows() {
                let length = lengths[arranged.row_of()[at as usize] as usize];
                let e = arranged.entries(&units);
                prop_assert_eq!(e.end - e.start, length);
                prop_assert!(length >= weight);
            }
        }
    }
}

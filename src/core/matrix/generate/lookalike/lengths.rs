//! The row lengths of a look-alike, looked up by rank.

use super::fit::Fit;
use super::known::KnownMatrix;

/// Row lengths of a matrix, longest first.
#[derive(Clone, Debug, PartialEq)]
pub struct RowLengths {
    lengths: Vec<u32>,
    /// For each length, how many rows are at least as long.
    ends: Vec<u32>,
}

/// The size of a look-alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    pub rows: u32,
    pub nonzeros: u64,
    /// The dimension over that of the known matrix.
    pub scale: f64,
}

impl RowLengths {
    /// The row lengths of a look-alike of this size.
    pub fn of(known: &KnownMatrix, size: Size) -> Self {
        let mut counts = Fit::of(known, size).counts(known, size);
        counts.sort_by_key(|count| std::cmp::Reverse(count.length));
        let ends = counts.iter().scan(0, |end, count| {
            *end += count.rows;
            Some(*end)
        });
        Self {
            ends: ends.collect(),
            lengths: counts.iter().map(|count| count.length).collect(),
        }
    }

    /// The length of the row that has `rank` rows before it.
    pub fn of_rank(&self, rank: u32) -> u32 {
        let index = self.ends.partition_point(|end| *end <= rank);
        self.lengths.get(index).copied().unwrap_or(0)
    }
}

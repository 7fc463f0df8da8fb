//! How long the rows of a look-alike are.

use super::fit::Fit;
use super::known::Known;

/// Row lengths of a matrix, longest first.
#[derive(Clone, Debug, PartialEq)]
pub struct RowLengths {
    lengths: Vec<u32>,
    /// How many rows are at least as long, for each length.
    ends: Vec<u32>,
}

/// How large a look-alike is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    pub rows: u32,
    pub nonzeros: u64,
    /// Of the dimension, to that of the known matrix.
    pub scale: f64,
}

impl RowLengths {
    /// Of a look-alike of this size.
    pub fn of(known: &Known, size: Size) -> Self {
        let mut runs = Fit::of(known, size).runs(known, size);
        runs.sort_by_key(|run| std::cmp::Reverse(run.length));
        let ends = runs.iter().scan(0, |end, run| {
            *end += run.rows;
            Some(*end)
        });
        Self {
            ends: ends.collect(),
            lengths: runs.iter().map(|run| run.length).collect(),
        }
    }

    /// The length of the row that has so many before it.
    pub fn of_rank(&self, rank: u32) -> u32 {
        let run = self.ends.partition_point(|end| *end <= rank);
        self.lengths.get(run).copied().unwrap_or(0)
    }
}

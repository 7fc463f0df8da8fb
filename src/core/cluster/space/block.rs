//! Blocks: rectangles of a space's elements.

use serde::{Deserialize, Serialize};

use std::ops::Range;

/// A rectangle of elements: a range of rows and a range of columns. A range of a vector is
/// a block of one row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Block {
    pub rows: Range<u64>,
    pub columns: Range<u64>,
}

impl Block {
    /// A block; empty if one of its ranges is.
    pub fn new(rows: Range<u64>, columns: Range<u64>) -> Self {
        Self { rows, columns }
    }

    /// The number of rows.
    pub fn height(&self) -> u64 {
        self.rows.end.saturating_sub(self.rows.start)
    }

    /// The number of columns.
    pub fn width(&self) -> u64 {
        self.columns.end.saturating_sub(self.columns.start)
    }

    /// The number of elements.
    pub fn elements(&self) -> u64 {
        self.height() * self.width()
    }

    pub fn is_empty(&self) -> bool {
        self.elements() == 0
    }

    /// Whether all elements of another block are in this one.
    pub fn contains(&self, other: &Self) -> bool {
        other.is_empty()
            || (self.rows.start <= other.rows.start
                && other.rows.end <= self.rows.end
                && self.columns.start <= other.columns.start
                && other.columns.end <= self.columns.end)
    }

    /// The elements of this block before the first one of a part of it, by rows.
    pub fn offset_of(&self, part: &Self) -> u64 {
        let rows = part.rows.start - self.rows.start;
        rows * self.width() + part.columns.start - self.columns.start
    }

    /// The elements that both have; `None` if there are none.
    pub fn common(&self, other: &Self) -> Option<Self> {
        let both = |a: &Range<u64>, b: &Range<u64>| a.start.max(b.start)..a.end.min(b.end);
        let common = Self::new(
            both(&self.rows, &other.rows),
            both(&self.columns, &other.columns),
        );
        (!common.is_empty()).then_some(common)
    }

    /// The elements of this block that another does not have, as at most four blocks:
    /// above it, below it, left and right of it.
    pub fn without(&self, other: &Self) -> Vec<Self> {
        let Some(hole) = self.common(other) else {
            return match self.is_empty() {
                true => Vec::new(),
                false => vec![self.clone()],
            };
        };
        let pieces = [
            Self::new(self.rows.start..hole.rows.start, self.columns.clone()),
            Self::new(hole.rows.end..self.rows.end, self.columns.clone()),
            Self::new(hole.rows.clone(), self.columns.start..hole.columns.start),
            Self::new(hole.rows.clone(), hole.columns.end..self.columns.end),
        ];
        pieces
            .into_iter()
            .filter(|piece| !piece.is_empty())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_block(random: &mut fastrand::Rng) -> Block {
        let mut range = || {
            let begin = random.u64(..7);
            begin..begin + random.u64(..6)
        };
        Block::new(range(), range())
    }

    fn has(block: &Block, row: u64, column: u64) -> bool {
        block.rows.contains(&row) && block.columns.contains(&column)
    }

    /// Every element is in exactly the pieces where it belongs.
    #[test]
    fn common_and_without_divide_a_block() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..2000 {
            let (one, other) = (random_block(&mut random), random_block(&mut random));
            let (common, rest) = (one.common(&other), one.without(&other));
            for row in 0..14 {
                for column in 0..14 {
                    let both = has(&one, row, column) && has(&other, row, column);
                    let only = has(&one, row, column) && !has(&other, row, column);
                    assert_eq!(common.as_ref().is_some_and(|b| has(b, row, column)), both);
                    let times = rest.iter().filter(|b| has(b, row, column)).count();
                    assert_eq!(times, usize::from(only), "{one:?} without {other:?}");
                }
            }
            assert_eq!(
                one.contains(&other),
                other.is_empty() || other.without(&one).is_empty()
            );
        }
    }
}

//! A space cut into blocks of equal size, smaller at its last row and column.

use std::sync::Arc;

use crate::cluster::space::{Block, Extent};

/// Blocks of a space, numbered by rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiles {
    extent: Extent,
    height: u64,
    width: u64,
}

impl Tiles {
    /// Blocks of this height and width.
    pub fn new(extent: Extent, [height, width]: [u64; 2]) -> Self {
        Self {
            extent,
            height: height.max(1),
            width: width.max(1),
        }
    }

    /// Blocks of a row of blocks.
    pub fn across(&self) -> u64 {
        self.extent.columns.div_ceil(self.width).max(1)
    }

    /// The number of blocks.
    pub fn count(&self) -> u64 {
        let down = self.extent.rows.div_ceil(self.height);
        self.across().saturating_mul(down)
    }

    /// A block.
    pub fn block(&self, number: u64) -> Block {
        let cut = |index: u64, size: u64, end: u64| {
            let begin = (index * size).min(end);
            begin..(begin + size).min(end)
        };
        Block::new(
            cut(number / self.across(), self.height, self.extent.rows),
            cut(number % self.across(), self.width, self.extent.columns),
        )
    }

    /// The numbers of all blocks in nested squares: of each two by two blocks, of each two by
    /// two of these, and so on. Blocks whose places here are near lie in few rows and columns.
    pub fn nested(&self) -> Arc<[u64]> {
        let across = self.across();
        let spread = |number: u64| (0..32).map(move |bit| (number >> bit & 1) << (2 * bit));
        let interleaved = |number: &u64| -> u64 {
            let (row, column) = (number / across, number % across);
            spread(row).map(|bit| bit << 1).chain(spread(column)).sum()
        };
        let mut all: Vec<u64> = (0..self.count()).collect();
        all.sort_by_cached_key(interleaved);
        all.into()
    }

    /// All blocks, in their order.
    pub fn all(&self) -> impl Iterator<Item = Block> + use<> {
        let tiles = *self;
        (0..tiles.count()).map(move |number| tiles.block(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_blocks_are_all_and_the_first_ones_are_a_square() {
        let extent = Extent {
            rows: 70,
            columns: 50,
            element: 4,
        };
        let tiles = Tiles::new(extent, [10, 10]);
        let nested = tiles.nested();
        let mut all = nested.to_vec();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..35));
        let first: Vec<Block> = nested[..16].iter().map(|&n| tiles.block(n)).collect();
        assert!(
            first
                .iter()
                .all(|block| block.rows.end <= 40 && block.columns.end <= 40)
        );
    }
}

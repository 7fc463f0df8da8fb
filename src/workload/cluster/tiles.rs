//! A space cut into blocks of equal size, smaller at its last row and column.

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
        self.across() * self.extent.rows.div_ceil(self.height)
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

    /// All blocks, in their order.
    pub fn all(&self) -> impl Iterator<Item = Block> + use<> {
        let tiles = *self;
        (0..tiles.count()).map(move |number| tiles.block(number))
    }
}

//! The length of a matrix, and its division into tiles.

use std::ops::Range;

/// The rows or the columns of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Whole tiles, as in the paper.
    Tiles(u32),
    /// So many numbers. The last tile is smaller if the tile's length does not divide
    /// them.
    Numbers(u32),
}

impl Extent {
    /// Tiles of this length.
    pub fn tiles(self, tile: u32) -> u32 {
        match self {
            Self::Tiles(tiles) => tiles,
            Self::Numbers(numbers) => numbers.div_ceil(tile.max(1)),
        }
    }

    /// All numbers.
    pub fn numbers(self, tile: u32) -> u64 {
        match self {
            Self::Tiles(tiles) => u64::from(tiles) * u64::from(tile),
            Self::Numbers(numbers) => numbers.into(),
        }
    }

    /// The numbers of one tile.
    pub(super) fn part(self, index: u32, tile: u32) -> Range<u64> {
        let tile_length = u64::from(tile);
        let begin = u64::from(index) * tile_length;
        begin..(begin + tile_length).min(self.numbers(tile))
    }

    /// At most so many whole tiles of it, for a sample of tasks.
    pub fn at_most(self, tiles: u32, tile: u32) -> Self {
        match self {
            Self::Tiles(all) => Self::Tiles(all.min(tiles)),
            Self::Numbers(all) => Self::Numbers(all.min(tiles.saturating_mul(tile))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_tile_has_the_rest() {
        let parts = |extent: Extent, tile| -> Vec<Range<u64>> {
            let all = 0..extent.tiles(tile);
            all.map(|index| extent.part(index, tile)).collect()
        };
        assert_eq!(parts(Extent::Numbers(10), 4), [0..4, 4..8, 8..10]);
        assert_eq!(parts(Extent::Numbers(8), 4), [0..4, 4..8]);
        assert_eq!(parts(Extent::Numbers(5), 4), [0..4, 4..5]);
        assert_eq!(parts(Extent::Tiles(2), 4), [0..4, 4..8]);
        assert_eq!(Extent::Numbers(10).at_most(2, 4), Extent::Numbers(8));
        assert_eq!(Extent::Numbers(3).at_most(2, 4), Extent::Numbers(3));
    }
}

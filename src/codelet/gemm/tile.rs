//! How a GPU divides a product: tiles of work-groups, blocks of work-items.

use std::fmt;

use super::Gemm;

/// The compile-time sizes of `kernels/gemm.cl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// Rows and columns of C that a work-group computes.
    pub rows: u32,
    pub columns: u32,
    /// Columns of A, and rows of B, in local memory at once.
    pub depth: u32,
    /// Rows and columns of C that a work-item computes, multiples of 4.
    pub item_rows: u32,
    pub item_columns: u32,
}

const fn tile(rows: u32, columns: u32, depth: u32, item_rows: u32, item_columns: u32) -> Tile {
    Tile {
        rows,
        columns,
        depth,
        item_rows,
        item_columns,
    }
}

/// The tiles to choose from, the largest first.
pub const TILES: [Tile; 12] = [
    tile(128, 256, 8, 8, 16),
    tile(128, 128, 8, 8, 8),
    tile(128, 128, 16, 8, 8),
    tile(128, 64, 8, 8, 8),
    tile(128, 64, 16, 8, 8),
    tile(64, 128, 16, 8, 8),
    tile(64, 64, 16, 8, 8),
    tile(64, 64, 8, 8, 4),
    tile(64, 64, 16, 8, 4),
    tile(64, 64, 16, 4, 4),
    tile(32, 64, 16, 4, 4),
    tile(32, 32, 16, 4, 4),
];

/// For devices whose groups are small.
pub(super) const SMALL_GROUP: &Tile = &tile(32, 64, 16, 8, 8);

/// For many work-groups: the most arithmetic on registers.
const LARGE: &Tile = &TILES[2];

/// For fewer: as many numbers a work-item, in groups of half the size.
const MIDDLE: &Tile = &TILES[5];

/// For few: more groups, of fewer numbers each.
const SMALL: &Tile = &TILES[8];

/// For very few.
const LEAST: &Tile = &TILES[11];

/// The groups that fill a large GPU, such as the 132 multiprocessors of an H200: two
/// each of the large tiles, one of the middle ones. A single product of small tiles
/// does not fill it, but several at once on several queues do.
const LARGE_GROUPS: u64 = 256;
const MIDDLE_GROUPS: u64 = 128;
const SMALL_GROUPS: u64 = 32;

impl Tile {
    /// The tile for these sizes: the largest that still makes enough groups. Measured on an H200 launch by launch, in TFLOP/s
    /// (the others' best in brackets): 16 of 512 rows 41 (40), 48 of 256 rows 37
    /// (36), 16 of 256 rows 27 (27), single ones of 512 rows on eight queues 34
    /// (35) and on one queue 12 (15).
    pub fn of(gemm: &Gemm) -> &'static Self {
        let choice = [
            (LARGE, LARGE_GROUPS),
            (MIDDLE, MIDDLE_GROUPS),
            (SMALL, SMALL_GROUPS),
        ];
        let enough = |(tile, least): &&(&Self, u64)| tile.groups(gemm) >= *least;
        choice.iter().find(enough).map_or(LEAST, |(tile, _)| tile)
    }

    /// Work-items of a group.
    pub fn items(&self) -> u32 {
        (self.rows / self.item_rows) * (self.columns / self.item_columns)
    }

    /// Work-groups of a product.
    pub fn groups(&self, gemm: &Gemm) -> u64 {
        let [across, down] = self.grid(gemm);
        across * down * u64::from(gemm.batch)
    }

    /// Work-groups across and down one C.
    pub(super) fn grid(&self, gemm: &Gemm) -> [u64; 2] {
        [
            gemm.columns.div_ceil(self.columns).into(),
            gemm.rows.div_ceil(self.rows).into(),
        ]
    }

    /// Whether tiles and stages divide the sizes, so that nothing is guarded.
    pub(super) fn divides(&self, gemm: &Gemm) -> bool {
        gemm.rows.is_multiple_of(self.rows)
            && gemm.columns.is_multiple_of(self.columns)
            && gemm.depth.is_multiple_of(self.depth)
    }
}

impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let text = format!(
            "{}x{}x{}/{}x{}",
            self.rows, self.columns, self.depth, self.item_rows, self.item_columns
        );
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tile_is_what_the_kernel_can() {
        assert_eq!(SMALL_GROUP.items() as usize, crate::LEAST_GROUP);
        for tile in TILES.iter().chain([SMALL_GROUP]) {
            let (across, down) = (tile.columns / tile.item_columns, tile.rows / tile.item_rows);
            assert!(across.is_multiple_of(8) && down.is_multiple_of(4), "{tile}");
            assert!(tile.item_rows.is_multiple_of(4) && tile.item_columns.is_multiple_of(4));
            for side in [tile.rows, tile.columns] {
                let reads = side * tile.depth / 4;
                assert!(
                    reads >= tile.items() && reads.is_multiple_of(tile.items()),
                    "{tile}"
                );
            }
            // What every OpenCL GPU has: 256 work-items, 32 KiB, NVIDIA's 48.
            let local = 2 * tile.depth * (tile.rows + tile.columns + 8) * 4;
            assert!(tile.items() <= 256 && local <= 48 << 10, "{tile}");
        }
    }

    #[test]
    fn tiles_shrink_with_the_work() {
        let chosen = |size, batch| Tile::of(&Gemm::square(size).batch(batch)).to_string();
        assert_eq!(chosen(512, 16), "128x128x16/8x8");
        assert_eq!(chosen(256, 48), "64x128x16/8x8");
        assert_eq!(chosen(512, 1), "64x64x16/8x4");
        assert_eq!(chosen(256, 16), "64x128x16/8x8");
        assert_eq!(chosen(64, 1), "32x32x16/4x4");
    }
}

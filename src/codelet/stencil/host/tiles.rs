//! How a superstep is cut into tiles.
//!
//! A tile is computed for all steps before the next one, in scratch that stays in the
//! core's own cache. It computes its halo itself, so that it waits for no other tile: what
//! `n` more steps follow is computed `n` points beyond the tile. Small tiles compute much
//! of that, and large ones leave the cache.

use std::ops::Range;

use crate::host::piece;

use super::grid;

/// Scratch that stays in a second-level cache of a megabyte.
const OWN_CACHE_BYTES: usize = 768 << 10;

/// Scratch that stays in a core's share of the last-level cache.
const SHARED_CACHE_BYTES: usize = 3 << 20;

/// Time with scratch in the last-level cache instead of the second-level one. Measured on
/// a Zen 4 core in Gpoint/s (AVX-512, doubles, best of 5 runs), with scratch of up to
///
/// | | 0.5 | 0.75 | 1 | 2 | 3 | 4 | 8 MiB |
/// |---|---|---|---|---|---|---|---|
/// | 4096 x 4096, 32 steps | 4.14 | 4.23 | 4.33 | 4.18 | | | |
/// | 4096 x 4096, 64 steps | 2.62 | 3.56 | 3.38 | 4.11 | | | |
/// | 258^3, 4 steps | 0.94 | | 1.38 | 1.46 | 1.47 | 1.48 | 1.34 |
/// | 258^3, 8 steps | 0.54 | | 1.04 | 1.38 | 1.59 | 1.65 | 1.69 |
const SHARED_CACHE_TIME: f64 = 1.15;

/// Threads compute at most so many tiles one after the other, unless even more are needed for
/// the caches: rounds that are not full cost less then than the halos of more tiles.
const MOST_ROUNDS: usize = 8;

/// What the computation of a row costs beside its points, in bytes of that row.
const ROW_BYTES: usize = 512;

/// Points of a cache line.
pub(super) const fn line(point: usize) -> usize {
    64 / point
}

/// What a superstep computes.
#[derive(Clone, Debug)]
pub(super) struct Work {
    /// Inner units, and the inner rows and columns of each.
    pub(super) units: Range<usize>,
    pub(super) rows: Range<usize>,
    pub(super) columns: Range<usize>,
    /// Bytes of a point.
    pub(super) point: usize,
    /// Units of a block of a version.
    pub(super) block: usize,
    pub(super) steps: usize,
    pub(super) threads: usize,
}

/// A part of the work.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tile {
    pub(super) units: Range<usize>,
    pub(super) rows: Range<usize>,
    pub(super) columns: Range<usize>,
}

/// Number of parts that each axis of the work is cut into.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tiles {
    pub(super) units: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Work {
    /// The greatest number of tiles. Vectors may end up to a line later than their tile,
    /// so that the last one has three lines at least.
    pub(super) fn most_tiles(&self) -> Tiles {
        Tiles {
            units: self.units.len(),
            rows: self.rows.len(),
            columns: (self.columns.len() / line(self.point) / 4).max(1),
        }
    }

    /// The tiles of the least expected time.
    pub(super) fn tiles(&self) -> Tiles {
        let most = self.most_tiles();
        let shapes = sizes(self.columns.len(), most.columns)
            .flat_map(|columns| sizes(self.rows.len(), most.rows).map(move |rows| (rows, columns)));
        let tiles = shapes.flat_map(|(rows, columns)| {
            let least = (rows * columns).div_ceil(self.threads);
            // As many parts of the units as the threads compute in so many rounds.
            (least..=least.max(MOST_ROUNDS)).map(move |rounds| Tiles {
                units: (rounds * self.threads / (rows * columns)).clamp(1, most.units.max(1)),
                rows,
                columns,
            })
        });
        let time = tiles.map(|tiles| (self.time(&tiles), tiles));
        let least = time.min_by(|(a, _), (b, _)| a.total_cmp(b));
        let one = Tiles {
            units: 1,
            rows: 1,
            columns: 1,
        };
        least.map_or(one, |(_, tiles)| tiles)
    }

    /// Expected time with these tiles: that of a point in the second-level cache is 1.
    fn time(&self, tiles: &Tiles) -> f64 {
        let rounds = tiles.count().div_ceil(self.threads);
        let length = self.units.len().div_ceil(tiles.units) + self.steps - 1;
        (rounds * length) as f64 * self.unit_time((tiles.rows, tiles.columns))
    }

    /// Expected time of a unit of a tile, if the work is cut into so many parts of rows and of
    /// columns.
    fn unit_time(&self, (row_parts, column_parts): (usize, usize)) -> f64 {
        let rows = self.rows.len().div_ceil(row_parts);
        let columns = self.columns.len().div_ceil(column_parts);
        let halo = self.steps - 1;
        // Halos of the first step, on both sides; the steps' average is half of that.
        let row_halo = if row_parts > 1 { 2 * halo } else { 0 };
        let column_halo = if column_parts > 1 {
            2 * (halo + line(self.point))
        } else {
            0
        };
        let (computed_rows, computed_columns) = (rows + row_halo / 2, columns + column_halo / 2);
        let call = 1.0 + ROW_BYTES as f64 / (computed_columns * self.point) as f64;
        let bytes = self.scratch_bytes(rows + row_halo, columns + column_halo);
        (computed_rows * computed_columns) as f64 * call * cache_time(bytes)
    }

    /// Bytes of a tile's scratch, whose first step computes so many rows and columns.
    fn scratch_bytes(&self, rows: usize, columns: usize) -> usize {
        grid::count(self.block, self.steps) * rows * columns * self.point
    }

    /// One of the tiles, of which there are [`Tiles::count`].
    pub(super) fn tile(&self, tiles: &Tiles, number: usize) -> Tile {
        let (rest, column) = (number / tiles.columns, number % tiles.columns);
        let (unit, row) = (rest / tiles.rows, rest % tiles.rows);
        let part = |all: &Range<usize>, grain, number, count| {
            let part = piece(all.len(), grain, number, count);
            all.start + part.start..all.start + part.end
        };
        Tile {
            units: part(&self.units, 1, unit, tiles.units),
            rows: part(&self.rows, 1, row, tiles.rows),
            columns: part(&self.columns, line(self.point), column, tiles.columns),
        }
    }
}

impl Tiles {
    pub(super) fn count(&self) -> usize {
        self.units * self.rows * self.columns
    }
}

/// Expected time with so much scratch, against one in the second-level cache. Beyond
/// the caches it grows without bound, so that the search comes back.
fn cache_time(bytes: usize) -> f64 {
    if bytes <= OWN_CACHE_BYTES {
        1.0
    } else {
        SHARED_CACHE_TIME * (bytes as f64 / SHARED_CACHE_BYTES as f64).max(1.0)
    }
}

/// Numbers of parts, up to `most`, that give different sizes.
fn sizes(all: usize, most: usize) -> impl Iterator<Item = usize> {
    (1..=most).filter(move |parts| *parts == 1 || all.div_ceil(*parts) < all.div_ceil(parts - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flat(n: usize, steps: usize, threads: usize) -> Work {
        Work {
            units: 1..n - 1,
            rows: 0..1,
            columns: 1..n - 1,
            point: 8,
            block: grid::block(super::super::FIVE),
            steps,
            threads,
        }
    }

    fn solid(n: usize, steps: usize, threads: usize) -> Work {
        Work {
            rows: 1..n - 1,
            block: grid::block(super::super::SEVEN),
            ..flat(n, steps, threads)
        }
    }

    /// Points that the tiles compute in all steps, for each that the work has.
    fn redundancy(work: &Work) -> f64 {
        let tiles = work.tiles();
        let computed = |all: &Range<usize>, parts: usize, extra: usize| {
            let halos = if parts > 1 { work.steps - 1 + extra } else { 0 };
            1.0 + (halos * parts) as f64 / all.len() as f64
        };
        computed(&work.units, tiles.units, 0)
            * computed(&work.rows, tiles.rows, 0)
            * computed(&work.columns, tiles.columns, line(work.point))
    }

    fn scratch(work: &Work) -> usize {
        let tiles = work.tiles();
        let halo = |parts, extra| {
            if parts > 1 {
                2 * (work.steps - 1 + extra)
            } else {
                0
            }
        };
        let rows = work.rows.len().div_ceil(tiles.rows) + halo(tiles.rows, 0);
        let columns = work.columns.len().div_ceil(tiles.columns);
        work.scratch_bytes(rows, columns + halo(tiles.columns, line(work.point)))
    }

    #[test]
    fn large_grids_are_computed_in_the_cache_with_few_points_twice() {
        for threads in [1, 2, 15] {
            for steps in [2, 4, 8, 16, 32] {
                let work = flat(8192, steps, threads);
                assert!(redundancy(&work) < 1.15, "{work:?}: {:?}", work.tiles());
                assert!(
                    scratch(&work) <= OWN_CACHE_BYTES,
                    "{work:?}: {:?}",
                    work.tiles()
                );
            }
            for steps in [2, 4, 8] {
                let work = solid(512, steps, threads);
                assert!(redundancy(&work) < 1.4, "{work:?}: {:?}", work.tiles());
                assert!(
                    scratch(&work) <= SHARED_CACHE_BYTES,
                    "{work:?}: {:?}",
                    work.tiles()
                );
            }
        }
    }

    #[test]
    fn threads_share_the_work_evenly() {
        for threads in [2, 3, 7, 15, 64] {
            for work in [flat(8192, 8, threads), solid(512, 4, threads)] {
                let tiles = work.tiles().count();
                let rounds = tiles.div_ceil(threads) * threads;
                assert!((rounds as f64) < 1.1 * tiles as f64, "{work:?}: {tiles}");
            }
        }
    }

    #[test]
    fn a_small_grid_is_one_tile() {
        let one = Tiles {
            units: 1,
            rows: 1,
            columns: 1,
        };
        assert_eq!(flat(64, 4, 1).tiles(), one);
        assert_eq!(solid(16, 4, 1).tiles(), one);
    }

    proptest! {
        #[test]
        fn every_point_is_in_one_tile(
            size in (1..40usize, 1..9usize, 1..700usize),
            steps in 1..50usize,
            threads in 1..9usize,
            single in any::<bool>(),
        ) {
            let work = Work {
                units: 5..5 + size.0,
                rows: 1..1 + size.1,
                columns: 1..1 + size.2,
                point: if single { 4 } else { 8 },
                block: 2,
                steps,
                threads,
            };
            let (tiles, most) = (work.tiles(), work.most_tiles());
            prop_assert!(tiles.units <= most.units);
            prop_assert!(tiles.rows <= most.rows && tiles.columns <= most.columns);
            for tiles in [tiles, most] {
                let mut points = vec![0; size.0 * size.1 * size.2];
                for number in 0..tiles.count() {
                    let tile = work.tile(&tiles, number);
                    prop_assert!(tiles.columns == 1 || tile.columns.len() > 3 * line(work.point));
                    for unit in tile.units {
                        for row in tile.rows.clone() {
                            for column in tile.columns.clone() {
                                points[((unit - 5) * size.1 + row - 1) * size.2 + column - 1] += 1;
                            }
                        }
                    }
                }
                prop_assert!(points.iter().all(|times| *times == 1));
            }
        }
    }
}

//! How a host pool's command is cut into tiles, the pieces that workers claim.
//! Pure.

use std::ops::Range;

use crate::codelet::Cost;

/// Least bytes of memory traffic of a tile. Below it, claiming costs more than
/// it balances.
const LEAST: f64 = (256 << 10) as f64;

/// Most bytes of memory traffic of a tile. Above it, the last tile of a step
/// is long enough to be waited for, and neighbouring tiles leave the cache.
const MOST: f64 = (4 << 20) as f64;

/// Tiles that every worker should get where there is enough work, so that a
/// worker slowed by the operating system delays the others little.
const PER_WORKER: u64 = 4;

/// Operations that take a core about as long as one byte of memory traffic.
const FLOPS_PER_BYTE: f64 = 4.0;

/// Nearly equal pieces of a range of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiles {
    units: u64,
    /// Tiles begin at multiples of so many units.
    grain: u64,
    /// Tiles, at least 1: an empty command has one empty tile.
    pub count: u64,
}

impl Tiles {
    /// Cuts `units` units that together cost `cost` for this many workers.
    /// All of them get the same number of tiles where there are enough: with
    /// one more for some, the others would wait for these.
    pub fn of(units: u64, cost: Cost, workers: usize) -> Self {
        let workers = workers.max(1) as u64;
        let wanted = PER_WORKER.saturating_mul(workers);
        let traffic = cost.bytes.max(cost.flops / FLOPS_PER_BYTE);
        let (count, most) = if traffic.is_finite() && traffic > 0.0 {
            // Saturates at both ends; a unit may well exceed a tile.
            let most = ((traffic / LEAST) as u64).max(1);
            let least = (traffic / MOST).ceil() as u64;
            (wanted.clamp(least.min(most), most), most)
        } else {
            (wanted, wanted)
        };
        let even = match count.next_multiple_of(workers) {
            _ if count < workers => count,
            more if more <= most => more,
            _ => count / workers * workers,
        };
        Self {
            units,
            grain: 1,
            count: even.min(units).max(1),
        }
    }

    /// Cuts a copy of this many bytes, at page boundaries.
    pub fn of_copy(bytes: u64, workers: usize) -> Self {
        const PAGE: u64 = 4096;
        // Each byte is read and written.
        let cost = Cost {
            flops: 0.0,
            bytes: 2.0 * bytes as f64,
        };
        let count = Self::of(bytes, cost, workers).count;
        Self {
            units: bytes,
            grain: PAGE,
            count: count.min(bytes.div_ceil(PAGE)).max(1),
        }
    }

    /// How many of so many workers have a tile: a small command leaves some
    /// idle.
    pub fn busy(&self, workers: usize) -> u64 {
        self.count.min(workers.max(1) as u64)
    }

    /// The units of a tile.
    pub fn range(&self, tile: u64) -> Range<u64> {
        self.bound(tile)..self.bound(tile + 1)
    }

    /// Where a tile begins.
    fn bound(&self, tile: u64) -> u64 {
        if tile >= self.count {
            return self.units;
        }
        // In 128 bits, as huge commands may have many tiles.
        let at = u128::from(self.units) * u128::from(tile) / u128::from(self.count);
        at as u64 / self.grain * self.grain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(bytes: f64) -> Cost {
        Cost { flops: 0.0, bytes }
    }

    #[test]
    fn a_large_grid_gets_tiles_of_some_megabytes_and_many_a_worker() {
        // 8192 x 8192 doubles: 128 KiB a row.
        let tiles = Tiles::of(8192, bytes(8192.0 * 8192.0 * 16.0), 2);
        assert_eq!(tiles.count, 256);
        assert_eq!(tiles.range(1), 32..64);
    }

    #[test]
    fn a_small_grid_is_not_cut_below_a_quarter_megabyte() {
        let tiles = Tiles::of(100, bytes(100.0 * 8192.0), 16);
        assert_eq!((tiles.count, tiles.busy(16), tiles.busy(2)), (3, 3, 2));
    }

    #[test]
    fn a_unit_larger_than_a_tile_is_a_tile() {
        let tiles = Tiles::of(7, bytes(7.0 * 64e6), 2);
        assert_eq!((tiles.range(0), tiles.count), (0..1, 7));
    }

    #[test]
    fn all_workers_get_as_many_tiles_of_nearly_one_size() {
        // A part of a grid of 16384 x 16384 doubles, for 15 workers.
        for units in [324, 686, 819, 1000] {
            let tiles = Tiles::of(units, bytes(units as f64 * 262_144.0), 15);
            assert_eq!(tiles.count % 15, 0, "{units}");
            for tile in 0..tiles.count {
                let range = tiles.range(tile);
                let size = range.end - range.start;
                assert!(
                    size.abs_diff(units / tiles.count) <= 1,
                    "{units}: {range:?}"
                );
            }
        }
    }

    #[test]
    fn work_without_a_known_cost_is_cut_by_workers() {
        assert_eq!(Tiles::of(64, Cost::default(), 2).count, 8);
        assert_eq!(Tiles::of(64, bytes(f64::NAN), 2).count, 8);
        assert_eq!(Tiles::of(64, bytes(f64::INFINITY), 2).count, 8);
    }

    #[test]
    fn much_arithmetic_on_few_bytes_is_cut_too() {
        let cost = Cost {
            flops: 64.0 * 4e6,
            bytes: 64.0,
        };
        assert_eq!(Tiles::of(64, cost, 2).count, 16);
    }

    #[test]
    fn nothing_is_one_tile() {
        assert_eq!(Tiles::of(0, bytes(0.0), 2).count, 1);
        assert_eq!(Tiles::of_copy(0, 2).count, 1);
    }

    #[test]
    fn tiles_cover_everything_once() {
        for units in [1, 2, 3, 17, 4099, 1 << 40] {
            for per_unit in [1.0, 24.0, 1e5, 1e9] {
                for workers in [1, 2, 7, 64] {
                    let tiles = Tiles::of(units, bytes(units as f64 * per_unit), workers);
                    assert_eq!(tiles.range(0).start, 0);
                    assert_eq!(tiles.range(tiles.count - 1).end, units);
                    for tile in (0..tiles.count - 1).take(1000) {
                        let range = tiles.range(tile);
                        assert!(!range.is_empty());
                        assert_eq!(range.end, tiles.range(tile + 1).start);
                    }
                }
            }
        }
    }
}

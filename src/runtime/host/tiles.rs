//! How a command is cut into tiles, the pieces that workers claim.

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

/// Equal pieces of a range; the last may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// Units of a tile, at least 1.
    pub size: u64,
    /// Tiles, at least 1: an empty command has one empty tile.
    pub count: u64,
}

impl Tiles {
    /// Cuts `units` units that together cost `cost` for this many workers.
    pub fn of(units: u64, cost: Cost, workers: usize) -> Self {
        let units = units.max(1);
        let wanted = units.div_ceil(PER_WORKER * workers.max(1) as u64);
        let traffic = cost.bytes.max(cost.flops / FLOPS_PER_BYTE) / units as f64;
        let size = if traffic.is_finite() && traffic > 0.0 {
            // Saturates at both ends; a unit may well exceed a tile.
            let least = (LEAST / traffic).ceil() as u64;
            let most = (MOST / traffic) as u64;
            wanted.clamp(least.max(1), most.max(least).max(1))
        } else {
            wanted
        };
        let size = size.min(units);
        Self {
            size,
            count: units.div_ceil(size),
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
        let size = Self::of(bytes, cost, workers).size.next_multiple_of(PAGE);
        Self {
            size,
            count: bytes.div_ceil(size).max(1),
        }
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
        assert_eq!(tiles.size, 32);
        assert_eq!(tiles.count, 256);
    }

    #[test]
    fn a_small_grid_is_not_cut_below_a_quarter_megabyte() {
        let tiles = Tiles::of(100, bytes(100.0 * 8192.0), 16);
        assert_eq!(tiles.size, 32);
        assert_eq!(tiles.count, 4);
    }

    #[test]
    fn a_unit_larger_than_a_tile_is_a_tile() {
        let tiles = Tiles::of(7, bytes(7.0 * 64e6), 2);
        assert_eq!((tiles.size, tiles.count), (1, 7));
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
                    assert!(tiles.size >= 1);
                    assert!((tiles.count - 1) * tiles.size < units);
                    assert!(tiles.count * tiles.size >= units);
                }
            }
        }
    }
}

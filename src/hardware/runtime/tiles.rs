//! Divides a host pool's command into tiles, the pieces that workers claim. Pure.

use std::ops::Range;

use crate::codelet::Cost;

/// Least bytes of memory traffic of a tile. Below it, claiming costs more than
/// it balances.
const LEAST: f64 = (256 << 10) as f64;

/// Most bytes of memory traffic of a tile. Above it, the last tile of a step
/// is long enough to be waited for, and neighbouring tiles leave the cache.
const MOST: f64 = (4 << 20) as f64;

/// Tiles for every worker where there is enough work, so that a worker slowed by
/// the operating system delays the others little.
const PER_WORKER: u64 = 4;

/// The last tile of each worker's run is claimed in so many parts, so that the
/// others wait little for a late worker.
const PARTS: u64 = 4;

/// Operations that take a core about as long as one byte of memory traffic.
const FLOPS_PER_BYTE: f64 = 4.0;

/// Nearly equal pieces of a range of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiles {
    units: u64,
    /// Tiles begin at multiples of this number of units.
    grain: u64,
    /// Tiles, at least 1: an empty command has one empty tile.
    pub count: u64,
    /// Parts of a tile, at least 1.
    parts: u64,
}

impl Tiles {
    /// Cuts `units` units that together cost `cost` for this many workers.
    /// All workers get the same number of tiles where there are enough: if some had
    /// one more, the others would wait for these.
    pub fn of(units: u64, cost: Cost, workers: usize) -> Self {
        let workers = workers.max(1) as u64;
        let wanted = PER_WORKER.saturating_mul(workers);
        let traffic = cost.bytes.max(cost.flops / FLOPS_PER_BYTE);
        let (count, most) = if traffic.is_finite() && traffic > 0.0 {
            // Saturates at both ends; a unit may exceed a tile.
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
        let count = even.min(units).max(1);
        let parts = match traffic.is_finite() {
            true => (traffic / LEAST) as u64 / count,
            false => 1,
        };
        Self {
            units,
            grain: 1,
            count,
            parts: parts.min(units / count).clamp(1, PARTS),
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
            parts: 1,
        }
    }

    /// How many of the workers have a tile; a small command leaves some idle.
    pub fn busy(&self, workers: usize) -> u64 {
        self.count.min(workers.max(1) as u64)
    }

    /// All parts of tiles, in their order.
    pub fn all_parts(&self) -> u64 {
        self.count.saturating_mul(self.parts)
    }

    /// The parts of all tiles that belong to a worker.
    pub fn run(&self, worker: usize, workers: usize) -> Range<u64> {
        // In 128 bits, as huge commands may have many tiles.
        let bound = |worker: usize| {
            let tile = u128::from(self.count) * worker as u128 / workers.max(1) as u128;
            tile as u64 * self.parts
        };
        bound(worker)..bound(worker + 1)
    }

    /// The number of parts to claim at once of a run with `left` unclaimed parts.
    pub fn at_once(&self, left: u64) -> u64 {
        if left > self.parts { self.parts } else { 1 }
    }

    /// The units of some neighbouring parts.
    pub fn units(&self, parts: &Range<u64>) -> Range<u64> {
        self.bound(parts.start)..self.bound(parts.end)
    }

    /// Where a part begins.
    fn bound(&self, part: u64) -> u64 {
        let all = self.all_parts();
        if part >= all {
            return self.units;
        }
        let at = u128::from(self.units) * u128::from(part) / u128::from(all);
        at as u64 / self.grain * self.grain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(bytes: f64) -> Cost {
        Cost { flops: 0.0, bytes }
    }

    impl Tiles {
        /// The units of a tile.
        fn range(&self, tile: u64) -> Range<u64> {
            self.units(&(tile * self.parts..(tile + 1) * self.parts))
        }
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
    fn the_last_tile_of_a_run_is_claimed_in_parts() {
        // 15 runs of 4 tiles, 2.7 MB each.
        let tiles = Tiles::of(620, bytes(620.0 * 262_144.0), 15);
        let run = tiles.run(3, 15);
        let (mut next, mut claims) = (run.start, Vec::new());
        while next < run.end {
            let parts = tiles.at_once(run.end - next);
            claims.push(parts);
            next += parts;
        }
        assert_eq!(claims, [4, 4, 4, 1, 1, 1, 1]);
        assert_eq!(tiles.run(14, 15).end, tiles.all_parts());
        // Nothing smaller than a quarter of a megabyte, or than a unit.
        assert_eq!(Tiles::of(100, bytes(100.0 * 8192.0), 16).parts, 1);
        assert_eq!(Tiles::of(120, bytes(120.0 * 4e6), 2).parts, 1);
        assert_eq!(Tiles::of_copy(1 << 30, 4).parts, 1);
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
                    let part = |part| tiles.units(&(part..part + 1));
                    for index in (0..tiles.all_parts() - 1).take(1000) {
                        assert!(!part(index).is_empty());
                        assert_eq!(part(index).end, part(index + 1).start);
                    }
                    let runs: Vec<_> = (0..workers).map(|w| tiles.run(w, workers)).collect();
                    assert!(runs.windows(2).all(|pair| pair[0].end == pair[1].start));
                    assert_eq!(runs[workers - 1].end, tiles.all_parts());
                }
            }
        }
    }
}

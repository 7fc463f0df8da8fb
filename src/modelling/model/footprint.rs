//! The cache lines of the vector that successive entries touch: what a cache keeps, and
//! what it misses.
//!
//! Two things are counted in windows of a given number of entries, spread over the
//! matrix. *Lines* that differ: with one line an entry nothing is shared. And *jumps*
//! in a window's later half: entries whose line no entry of the window touched before,
//! and which is not close to the line of the entry before. Those are the misses that
//! are waited for: a cache that holds the window misses what is new in it (the
//! working-set model of P. J. Denning, CACM 11(5), 1968: the rate of misses is the rate
//! at which the working set still grows), and lines close to the last one are fetched
//! ahead by the processor.

use std::ops::Range;

use crate::parallel;
use crate::workload::Divisible;
use crate::workload::spmv::Spmv;

/// Bytes of a cache line of the vector.
const LINE: u64 = 64;

/// Lines from one entry to the next within which the processor fetches ahead.
const CLOSE: u32 = 2;

/// A number of windows, and the entries of each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    pub length: u64,
    pub count: u64,
}

/// The counts per entry.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Footprint {
    pub lines: f64,
    /// 0 where a window holds the whole matrix: the next product finds all of
    /// it in that cache.
    pub jumps: f64,
}

/// Counts in windows of each of these kinds, one window a core at a time.
pub(super) fn footprints(spmv: &Spmv, kinds: &[Windows]) -> Vec<Footprint> {
    let windows = kinds.iter().enumerate().flat_map(|(kind, windows)| {
        let units = spread(spmv, *windows);
        units.map(move |units| (kind, units))
    });
    let windows: Vec<(usize, Range<u64>)> = windows.collect();
    let count = |(kind, units)| (kind, Counts::of(spmv, units));
    let mut counts = vec![Counts::default(); kinds.len()];
    for (kind, window) in parallel::map(windows, count) {
        counts[kind].add(window);
    }
    let whole = |windows: &Windows| spmv.matrix().nonzeros() <= windows.length;
    (kinds.iter().zip(counts))
        .map(|(windows, counts)| counts.footprint(whole(windows)))
        .collect()
}

/// Counts over windows: entries and distinct lines, and entries and jumps of the later
/// halves.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    entries: u64,
    lines: u64,
    later: u64,
    jumps: u64,
}

impl Counts {
    /// In the window of these units.
    fn of(spmv: &Spmv, units: Range<u64>) -> Self {
        let entries = spmv.arrangement().entries(&units);
        let mut columns = vec![0; (entries.end - entries.start) as usize];
        spmv.write_columns(units, &mut columns);
        let line = |column: u32| (u64::from(column) * spmv.number() / LINE) as u32;
        let lines = line(spmv.matrix().columns()) + 1;
        // A bit for each that was touched.
        let mut touched = vec![0u64; lines.div_ceil(64) as usize];
        let half = columns.len() / 2;
        let mut counts = Self {
            entries: columns.len() as u64,
            later: (columns.len() - half) as u64,
            ..Self::default()
        };
        let mut before = None;
        for (at, line) in columns.into_iter().map(line).enumerate() {
            let close = before.is_some_and(|before: u32| line.abs_diff(before) <= CLOSE);
            before = Some(line);
            let (word, bit) = (&mut touched[line as usize / 64], 1 << (line % 64));
            if *word & bit == 0 {
                *word |= bit;
                counts.lines += 1;
                counts.jumps += u64::from(at >= half && !close);
            }
        }
        counts
    }

    fn add(&mut self, other: Self) {
        self.entries += other.entries;
        self.lines += other.lines;
        self.later += other.later;
        self.jumps += other.jumps;
    }

    /// The counts per entry; `whole` if each window was the whole matrix.
    fn footprint(self, whole: bool) -> Footprint {
        let of = |count: u64, all: u64| count as f64 / all.max(1) as f64;
        Footprint {
            lines: of(self.lines, self.entries),
            jumps: match whole {
                true => 0.0,
                false => of(self.jumps, self.later),
            },
        }
    }
}

/// The units of each window.
fn spread(spmv: &Spmv, windows: Windows) -> impl Iterator<Item = Range<u64>> {
    let units = spmv.units();
    let each = (windows.length * units).div_ceil(spmv.matrix().nonzeros().max(1));
    let each = each.clamp(1, units);
    let count = windows.count.min(units / each).max(1);
    (0..count).map(move |window| {
        let first = (units - each) * window / count.saturating_sub(1).max(1);
        first..first + each
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use super::*;
    use crate::matrix::{MatrixSource, control};
    use crate::workload::spmv::Options;

    fn spmv(source: &str) -> Spmv {
        let source: MatrixSource = source.parse().unwrap();
        let loaded = control::quietly(|control| source.load(control)).unwrap();
        Spmv::new("", Arc::new(loaded.csr), Options::default()).unwrap()
    }

    fn of(source: &str, length: u64, count: u64) -> Footprint {
        let spmv = spmv(source);
        footprints(&spmv, &[Windows { length, count }])[0]
    }

    #[test]
    fn lines_of_a_window_are_counted_once() {
        let product = spmv("uniform:3000,7");
        let mut columns = vec![0; 21_000];
        product.write_columns(0..product.units(), &mut columns);
        let lines: HashSet<u32> = columns.iter().map(|column| column / 8).collect();
        let windows = Windows {
            length: 21_000,
            count: 3,
        };
        let other = Windows {
            length: 700,
            count: 5,
        };
        let found = footprints(&product, &[other, windows]);
        assert_eq!(found[1].lines, lines.len() as f64 / 21_000.0);
        assert_eq!(found[1].jumps, 0.0, "a window holds it whole");
        assert!(found[0].lines > found[1].lines && found[0].jumps > 0.0);
    }

    #[test]
    fn a_band_has_lines_and_no_jumps() {
        // Nine entries a row, and each row moves on by one: a line every eight.
        let band = of("banded:50000,4", 2048, 16);
        assert!(band.lines < 0.03 && band.jumps == 0.0, "{band:?}");
    }

    #[test]
    fn chance_jumps_until_all_lines_have_been_touched() {
        let near = of("uniform:400000,3", 2048, 16);
        assert!(near.lines > 0.9 && near.jumps > 0.9, "{near:?}");
        // 800 thousand entries, 50 thousand lines.
        let far = of("uniform:400000,3", 800_000, 1);
        assert!(far.lines < 0.1 && far.jumps < 0.01, "{far:?}");
    }
}

//! The figures of a matrix on which the time of a product depends: the statistics of
//! the PDAWL paper's section 4.1 (dimension, nonzeros, mean, coefficient of variation
//! and maximum of the row lengths), its bandwidth, and how often neighbouring entries
//! share a cache line of the vector.

use std::ops::Range;

use crate::matrix::Stats;
use crate::parallel;
use crate::workload::Divisible;
use crate::workload::spmv::Spmv;

/// Windows in which lines are counted: about what a core's nearest cache, or a
/// work-group, keeps the lines of ...
const NEAR: Windows = windows(2048, 64);
/// ... and about what a large cache keeps those of.
const FAR: Windows = windows(256 << 10, 6);

/// Windows in which jumps are counted: with 12 bytes of matrix an entry, and
/// the vector's lines, about what a core's own cache of 1 or 2 MiB holds ...
const OWN: Windows = windows(64 << 10, 16);
/// ... and a core's part of a cache that many cores share.
const SHARED: Windows = windows(4 << 20, 2);

const fn windows(length: u64, count: u64) -> Windows {
    Windows { length, count }
}

/// Figures of a matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MatrixFigures {
    pub rows: u64,
    pub columns: u64,
    pub nonzeros: u64,
    /// Entries a row: mean, coefficient of variation, and most.
    pub mean: f64,
    pub variation: f64,
    pub most: u64,
    /// Greatest distance of an entry from the diagonal.
    pub bandwidth: u64,
    /// Part of the rows that may be ordered as irregular.
    pub irregular: f64,
    /// Distinct lines of the vector per entry, 1 if each entry has its own: among few
    /// successive entries, and among many.
    pub near_lines: f64,
    pub far_lines: f64,
    /// Entries per entry that wait for their line of the vector, because a core's own
    /// cache misses it, and because a shared cache does.
    pub near_jumps: f64,
    pub far_jumps: f64,
}

impl MatrixFigures {
    /// The figures of a product's matrix, in the order of its computation.
    pub fn of(spmv: &Spmv) -> Self {
        let stats = Stats::of(spmv.matrix());
        let kinds = [NEAR, FAR, OWN, SHARED];
        let found = footprints(spmv, &kinds);
        Self {
            rows: stats.rows.into(),
            columns: stats.columns.into(),
            nonzeros: stats.nonzeros,
            mean: stats.mean,
            variation: match stats.mean > 0.0 {
                true => stats.deviation / stats.mean,
                false => 0.0,
            },
            most: stats.most,
            bandwidth: stats.bandwidth.into(),
            irregular: spmv.options().irregular,
            near_lines: found[0].lines,
            far_lines: found[1].lines,
            near_jumps: found[2].jumps,
            far_jumps: found[3].jumps,
        }
    }

    /// The figures of `units` units of `all`, as if these were a matrix.
    pub fn part(self, units: u64, all: u64) -> Self {
        let part = |count: u64| {
            let part = u128::from(count) * u128::from(units) / u128::from(all.max(1));
            part as u64
        };
        Self {
            rows: part(self.rows),
            nonzeros: part(self.nonzeros),
            ..self
        }
    }

    /// The greatest size of a unit over the average: where rows differ in length, some
    /// units have few rows.
    pub fn unevenness(&self) -> f64 {
        1.0 + self.variation.min(1.0) / self.mean.max(1.0)
    }

    /// Bytes of the vector that is multiplied with, at `number` bytes each.
    pub fn vector_bytes(&self, number: u64) -> u64 {
        self.columns * number
    }
}

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
    use crate::matrices::matrix;
    use crate::matrix::{MatrixSource, control};
    use crate::workload::spmv::Options;

    fn figures(source: &str) -> MatrixFigures {
        let source: MatrixSource = source.parse().unwrap();
        let loaded = control::quietly(|control| source.load(control)).unwrap();
        let options = Options::default();
        MatrixFigures::of(&Spmv::new("", Arc::new(loaded.csr), options).unwrap())
    }

    #[test]
    fn a_band_shares_lines_and_chance_does_not() {
        let band = figures("banded:50000,4");
        assert_eq!((band.rows, band.most, band.bandwidth), (50_000, 9, 4));
        assert!(band.near_lines < 0.03 && band.near_jumps == 0.0, "{band:?}");
        let uniform = figures("uniform:400000,3");
        assert!(uniform.near_lines > 0.9 && uniform.variation == 0.0);
        // Many entries meet again in a vector of 50 thousand lines.
        assert!(uniform.far_lines < 0.3, "{uniform:?}");
        // 32 Ki entries leave e^-0.66 of the lines untouched, 64 Ki e^-1.31.
        assert!((0.35..0.42).contains(&uniform.near_jumps), "{uniform:?}");
        assert_eq!(uniform.far_jumps, 0.0, "{uniform:?}");
    }

    #[test]
    fn a_part_has_all_columns() {
        let band = figures("banded:50000,4");
        let part = band.part(1, 4);
        assert_eq!((part.rows, part.columns), (12_500, 50_000));
        assert_eq!(part.nonzeros, band.nonzeros / 4);
    }

    #[test]
    fn nothing_has_figures_too() {
        for lengths in [&[][..], &[0, 0], &[1]] {
            let matrix = matrix(1, lengths, 1);
            let spmv = Spmv::new("", Arc::new(matrix), Options::default()).unwrap();
            let figures = MatrixFigures::of(&spmv);
            assert!(figures.near_lines <= 1.0 && figures.variation >= 0.0);
        }
    }

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

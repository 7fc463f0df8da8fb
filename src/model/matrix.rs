//! What a product's time depends on of its matrix, and is known before a run:
//! the statistics of the PDAWL paper's section 4.1 (dimension, nonzeros, mean,
//! coefficient of variation and maximum of the row lengths), its bandwidth, and
//! how often neighbouring entries share a cache line of the vector.

use std::collections::HashSet;
use std::ops::Range;

use crate::matrix::Stats;
use crate::workload::Divisible;
use crate::workload::spmv::Spmv;

/// Bytes of a cache line of the vector.
const LINE: u64 = 64;

/// Entries of a run in which lines are counted: about what a core's nearest
/// cache, or a work-group, keeps the lines of ...
const NEAR: u64 = 2048;
/// ... and about what a large cache keeps those of.
const FAR: u64 = 256 << 10;

/// Runs of either length that are looked at, spread over the matrix.
const NEAR_RUNS: u64 = 64;
const FAR_RUNS: u64 = 6;

/// Figures of a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// Distinct lines of the vector an entry, of 1 if each has its own: among
    /// entries that follow one another closely, and among many.
    pub near_lines: f64,
    pub far_lines: f64,
}

impl MatrixFigures {
    /// Of a product's matrix, in the order in which it is computed.
    pub fn of(spmv: &Spmv) -> Self {
        let stats = Stats::of(spmv.matrix());
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
            near_lines: lines(spmv, NEAR, NEAR_RUNS),
            far_lines: lines(spmv, FAR, FAR_RUNS),
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

    /// Bytes of the vector that is multiplied with, at `number` bytes each.
    pub fn vector_bytes(&self, number: u64) -> u64 {
        self.columns * number
    }
}

/// Distinct lines an entry, in some runs of `length` entries.
fn lines(spmv: &Spmv, length: u64, runs: u64) -> f64 {
    let (mut entries, mut distinct) = (0u64, 0usize);
    for run in sampled(spmv, length, runs) {
        let range = spmv.arrangement().entries(&run);
        let mut columns = vec![0; (range.end - range.start) as usize];
        spmv.write_columns(run, &mut columns);
        let line = |column: &u32| u64::from(*column) * spmv.number() / LINE;
        entries += columns.len() as u64;
        distinct += columns.iter().map(line).collect::<HashSet<_>>().len();
    }
    match entries {
        0 => 0.0,
        entries => distinct as f64 / entries as f64,
    }
}

/// Runs of units with about so many entries each, evenly spread.
fn sampled(spmv: &Spmv, length: u64, runs: u64) -> impl Iterator<Item = Range<u64>> {
    let units = spmv.units();
    let each = (length * units).div_ceil(spmv.matrix().nonzeros().max(1));
    let each = each.clamp(1, units);
    let runs = runs.min(units / each).max(1);
    (0..runs).map(move |run| {
        let first = (units - each) * run / runs.saturating_sub(1).max(1);
        first..first + each
    })
}

#[cfg(test)]
mod tests {
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
        // Nine entries a row, and each row moves on by one: a line every eight.
        assert!(band.near_lines < 0.03, "{band:?}");
        let uniform = figures("uniform:400000,3");
        assert!(uniform.near_lines > 0.9 && uniform.variation == 0.0);
        // Many entries meet again in a vector of 50 thousand lines.
        assert!(uniform.far_lines < 0.3, "{uniform:?}");
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
}

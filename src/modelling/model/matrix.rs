//! The figures of a matrix on which the time of a product depends: the statistics of
//! the PDAWL paper's section 4.1 (dimension, nonzeros, mean, coefficient of variation
//! and maximum of the row lengths), its bandwidth, and how often neighbouring entries
//! share a cache line of the vector.

use super::footprint::{Windows, footprints};
use crate::matrix::Stats;
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
}

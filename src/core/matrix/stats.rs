//! Statistics of a matrix: those of the PDAWL paper's section 4.1 and Table 3, and the
//! distribution of row lengths.

use schemars::JsonSchema;
use serde::Serialize;

use super::csr::Csr;

/// Statistics of a matrix.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    pub rows: u32,
    pub columns: u32,
    pub nonzeros: u64,
    /// Entries in a row: mean, standard deviation of the population, least and most.
    /// All are 0 for a matrix without rows.
    pub mean: f64,
    pub deviation: f64,
    pub least: u64,
    pub most: u64,
    pub empty_rows: u32,
    /// Greatest distance of an entry from the diagonal; 0 without entries.
    pub bandwidth: u32,
    /// Rows by length, shortest first, without empty classes.
    pub histogram: Vec<LengthClass>,
}

/// Rows with `least` to `most` entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct LengthClass {
    pub least: u64,
    pub most: u64,
    pub rows: u32,
    /// Entries of these rows.
    pub nonzeros: u64,
}

impl Stats {
    /// The statistics of a matrix.
    pub fn of(matrix: &Csr) -> Self {
        let mut stats = Self {
            rows: matrix.rows(),
            columns: matrix.columns(),
            nonzeros: matrix.nonzeros(),
            least: u64::MAX,
            ..Self::default()
        };
        let mut classes = [(0u32, 0u64); u64::BITS as usize + 1];
        let mut squares = 0u128;
        for row in 0..matrix.rows() {
            let (columns, _) = matrix.row(row);
            let length = columns.len() as u64;
            squares += u128::from(length) * u128::from(length);
            stats.least = stats.least.min(length);
            stats.most = stats.most.max(length);
            if let [first, .., last] | [first @ last] = columns {
                let distance = row.abs_diff(*first).max(row.abs_diff(*last));
                stats.bandwidth = stats.bandwidth.max(distance);
            }
            let class = &mut classes[class_of(length)];
            class.0 += 1;
            class.1 += length;
        }
        if stats.rows == 0 {
            stats.least = 0;
            return stats;
        }
        stats.empty_rows = classes[0].0;
        let (rows, total) = (u128::from(stats.rows), u128::from(stats.nonzeros));
        stats.mean = total as f64 / rows as f64;
        // Sums are exact integers: in floating point, long rows would cancel short ones.
        let variance = (rows * squares - total * total) as f64 / (rows * rows) as f64;
        stats.deviation = variance.sqrt();
        stats.histogram = (classes.iter().enumerate())
            .filter(|(_, (rows, _))| *rows > 0)
            .map(|(class, (rows, nonzeros))| {
                let (least, most) = bounds(class);
                LengthClass {
                    least,
                    most,
                    rows: *rows,
                    nonzeros: *nonzeros,
                }
            })
            .collect();
        stats
    }

    /// Coefficient of variation of the row lengths, deviation over mean; `None`
    /// for a matrix without entries.
    pub fn variation(&self) -> Option<f64> {
        (self.mean > 0.0).then(|| self.deviation / self.mean)
    }
}

/// The class of a length. Classes double in width: 0, 1, 2, 3 to 4, 5 to 8, and so on.
fn class_of(length: u64) -> usize {
    match length {
        0 => 0,
        length => 1 + (u64::BITS - (length - 1).leading_zeros()) as usize,
    }
}

/// The least and greatest length of a class.
fn bounds(class: usize) -> (u64, u64) {
    match class {
        0 => (0, 0),
        1 => (1, 1),
        class => (1 + (1 << (class - 2)), 1 << (class - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_computed_by_hand() {
        // Lengths 2, 0, 1, 5.
        let columns = vec![0, 5, 2, 0, 1, 2, 3, 4];
        let matrix = Csr::new(4, 6, vec![0, 2, 2, 3, 8], columns, vec![1.0; 8]).unwrap();
        let stats = Stats::of(&matrix);
        assert_eq!((stats.mean, stats.least, stats.most), (2.0, 0, 5));
        assert_eq!(stats.deviation, 3.5f64.sqrt());
        assert_eq!(stats.variation(), Some(3.5f64.sqrt() / 2.0));
        assert_eq!((stats.empty_rows, stats.bandwidth), (1, 5));
        let classes: Vec<_> = stats
            .histogram
            .iter()
            .map(|c| (c.least, c.most, c.rows, c.nonzeros))
            .collect();
        assert_eq!(
            classes,
            [(0, 0, 1, 0), (1, 1, 1, 1), (2, 2, 1, 2), (5, 8, 1, 5)]
        );
    }

    #[test]
    fn the_empty_have_figures_too() {
        for (rows, columns) in [(0, 0), (0, 3), (3, 0)] {
            let starts = vec![0; rows as usize + 1];
            let matrix = Csr::new(rows, columns, starts, Vec::new(), Vec::new()).unwrap();
            let stats = Stats::of(&matrix);
            assert_eq!((stats.mean, stats.deviation, stats.most), (0.0, 0.0, 0));
            assert_eq!((stats.least, stats.variation()), (0, None));
            assert_eq!(stats.empty_rows, rows);
        }
    }

    #[test]
    fn every_length_is_in_its_class() {
        for length in (0..5000).chain([u64::MAX >> 1]) {
            let (least, most) = bounds(class_of(length));
            assert!((least..=most).contains(&length), "{length}");
        }
        // No gaps between classes.
        for class in 0..60 {
            assert_eq!(bounds(class).1 + 1, bounds(class + 1).0);
        }
    }
}

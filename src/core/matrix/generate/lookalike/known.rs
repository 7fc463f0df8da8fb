//! Statistics of the matrices in the PDAWL paper's Table 3.
//!
//! Dimension, nonzeros, deviation and maximum are from that table. The table rounds
//! the first two, so their exact values are from the SuiteSparse Matrix Collection,
//! which has the matrices themselves. Other sources:
//!
//! * FullChip: its page in the collection mentions about 6 nodes with more than 1000
//!   neighbours, and 2 with more than 2 million. The deviation then gives the length
//!   of the second.
//! * circuit5M: the README of merge-spmv (D. Merrill, M. Garland: *Merge-based
//!   Parallel Sparse Matrix-Vector Multiplication*, SC 2016) has the number of
//!   rows for each power of ten of their length, and the skewness, from which
//!   the lengths of the 20 longest follow.
//!
//! Lengths within a class, and shapes given as numbers, are assumptions.

use std::ops::RangeInclusive;

/// A matrix that can be imitated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownMatrix {
    pub name: &'static str,
    pub rows: u32,
    pub nonzeros: u64,
    /// Standard deviation of the row lengths.
    pub deviation: f64,
    pub longest: u32,
    pub kind: Kind,
    /// Rows with entries in many columns, beside the longest.
    pub dense: &'static [DenseRows],
    /// Classes of rows that are longer than most.
    pub classes: &'static [RowClass],
    pub others: OtherRows,
}

/// The origin of a matrix, which decides the columns of its rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Mostly near the diagonal, with a few dense rows and columns.
    Circuit,
    /// Pages, which link to pages of their own host with this probability, and
    /// otherwise to popular hosts.
    Web { local: f64 },
    /// Nearly uniform.
    Kmer,
}

/// Dense rows and their lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DenseRows {
    /// Rows of equal length, which follows from the deviation of the matrix.
    ByDeviation { rows: u32 },
    /// Rows each of which is shorter than the one before by the same factor.
    Falling {
        rows: u32,
        longest: u32,
        shortest: u32,
    },
}

/// Rows with log-logistic lengths of this mean and shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowClass {
    pub rows: u32,
    pub least: u32,
    pub most: u32,
    pub mean: f64,
    pub shape: f64,
}

/// All other rows. Their mean follows from the nonzeros of the matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OtherRows {
    pub least: u32,
    pub most: u32,
    /// `None`: the shape follows from the deviation of the matrix.
    pub shape: Option<f64>,
}

/// The matrices, in the order of the table.
pub static KNOWN: [KnownMatrix; 5] = [
    KnownMatrix {
        name: "circuit5M",
        rows: 5_558_326,
        nonzeros: 59_524_291,
        deviation: 1356.62,
        longest: 1_290_501,
        kind: Kind::Circuit,
        dense: &[
            DenseRows::ByDeviation { rows: 5 },
            DenseRows::Falling {
                rows: 14,
                longest: 410_000,
                shortest: 105_000,
            },
        ],
        classes: &[
            class(7_568, 1000, 9999, 1600.0),
            class(20_298, 100, 999, 250.0),
            class(325_350, 10, 99, 20.0),
        ],
        others: OtherRows {
            least: 1,
            most: 9,
            shape: Some(4.0),
        },
    },
    KnownMatrix {
        name: "eu-2005",
        rows: 862_664,
        nonzeros: 19_235_140,
        deviation: 29.33,
        longest: 6985,
        // The collection calls its locality very low.
        kind: Kind::Web { local: 0.5 },
        dense: &[],
        classes: &[],
        others: OtherRows {
            least: 0,
            most: 6984,
            shape: None,
        },
    },
    KnownMatrix {
        name: "in-2004",
        rows: 1_382_908,
        nonzeros: 16_917_053,
        deviation: 37.23,
        longest: 7753,
        kind: Kind::Web { local: 0.8 },
        dense: &[],
        classes: &[],
        others: OtherRows {
            least: 0,
            most: 7752,
            shape: None,
        },
    },
    KnownMatrix {
        name: "FullChip",
        rows: 2_987_012,
        nonzeros: 26_621_983,
        // Printed as 1806.80, and this over the mean as 202.73: it lies between
        // 1806.803 and 1806.805.
        deviation: 1806.804,
        longest: 2_312_481,
        kind: Kind::Circuit,
        dense: &[
            DenseRows::ByDeviation { rows: 1 },
            DenseRows::Falling {
                rows: 4,
                longest: 50_000,
                shortest: 2000,
            },
        ],
        classes: &[],
        others: OtherRows {
            least: 1,
            most: 999,
            shape: Some(3.0),
        },
    },
    KnownMatrix {
        name: "kmer_U1a",
        rows: 67_716_231,
        nonzeros: 138_778_562,
        deviation: 0.37,
        longest: 35,
        kind: Kind::Kmer,
        dense: &[],
        classes: &[],
        others: OtherRows {
            least: 1,
            most: 34,
            shape: None,
        },
    },
];

/// Shapes of matrices of any size. Their statistics are invented, and similar to those
/// of the matrices above.
pub static SHAPES: [KnownMatrix; 2] = [
    KnownMatrix {
        name: "web",
        rows: 1_000_000,
        nonzeros: 15_000_000,
        deviation: 33.0,
        longest: 8000,
        kind: Kind::Web { local: 0.65 },
        dense: &[],
        classes: &[],
        others: OtherRows {
            least: 0,
            most: 7999,
            shape: None,
        },
    },
    KnownMatrix {
        name: "circuit",
        rows: 1_000_000,
        nonzeros: 8_000_000,
        deviation: 900.0,
        longest: 600_000,
        kind: Kind::Circuit,
        dense: &[
            DenseRows::ByDeviation { rows: 2 },
            DenseRows::Falling {
                rows: 4,
                longest: 20_000,
                shortest: 2000,
            },
        ],
        classes: &[class(20_000, 10, 99, 20.0)],
        others: OtherRows {
            least: 1,
            most: 9,
            shape: Some(3.5),
        },
    },
];

/// The mean entries in a row that a shape can have.
const MEANS: RangeInclusive<u32> = 4..=64;

const fn class(rows: u32, least: u32, most: u32, mean: f64) -> RowClass {
    RowClass {
        rows,
        least,
        most,
        mean,
        shape: 3.0,
    }
}

impl KnownMatrix {
    /// The matrix of this name, in any case of letters.
    pub fn find(name: &str) -> Option<&'static Self> {
        let mut known = KNOWN.iter();
        known.find(|known| known.name.eq_ignore_ascii_case(name))
    }

    /// The shape of this name.
    pub fn shape(name: &str) -> Option<&'static Self> {
        SHAPES.iter().find(|shape| shape.name == name)
    }

    /// The shape with a mean of `per_row` entries in a row. The lengths of rows that are
    /// not dense are multiplied.
    pub(super) fn with_mean(&self, per_row: u32) -> Result<Self, String> {
        let bounds = MEANS;
        if !bounds.contains(&per_row) {
            return Err(format!(
                "a {} has {} to {} entries a row, not {per_row}",
                self.name,
                bounds.start(),
                bounds.end()
            ));
        }
        let nonzeros = u64::from(self.rows) * u64::from(per_row);
        let factor = nonzeros as f64 / self.nonzeros as f64;
        let longer = |length: u32| (f64::from(length) * factor).ceil() as u32;
        let others = OtherRows {
            most: longer(self.others.most),
            ..self.others
        };
        Ok(match self.kind {
            // Dense rows have entries in the same fraction of the columns.
            Kind::Circuit => Self {
                nonzeros,
                others,
                ..*self
            },
            Kind::Web { .. } | Kind::Kmer => Self {
                nonzeros,
                others,
                deviation: self.deviation * factor,
                longest: longer(self.longest),
                ..*self
            },
        })
    }

    /// The mean entries in a row, if they are not those of the shape of this name.
    pub(super) fn changed_mean(&self) -> Option<u64> {
        let shape = Self::shape(self.name)?;
        (self.nonzeros != shape.nonzeros).then(|| self.nonzeros / u64::from(self.rows))
    }

    /// Whether it is a shape, rather than an imitated matrix.
    pub fn is_shape(&self) -> bool {
        Self::shape(self.name).is_some()
    }
}

//! The matrices of the PDAWL paper's Table 3, as far as they are known here.
//!
//! Dimension, nonzeros, deviation and maximum are from that table. It rounds the
//! first two, so they were taken, consistent with it, from the SuiteSparse
//! Matrix Collection, which has the matrices themselves. What else is known:
//!
//! * FullChip: its page in the collection tells of about 6 nodes with more than
//!   1000 neighbours, and 2 with more than 2 million. The deviation then gives
//!   the length of the second.
//! * circuit5M: the README of merge-spmv (D. Merrill, M. Garland: *Merge-based
//!   Parallel Sparse Matrix-Vector Multiplication*, SC 2016) has the number of
//!   rows for each power of ten of their length, and the skewness, from which
//!   the lengths of the 20 longest follow.
//!
//! Lengths within a class, and shapes that are written here as numbers, are
//! assumptions.

use std::ops::RangeInclusive;

/// A matrix that can be imitated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    pub name: &'static str,
    pub rows: u32,
    pub nonzeros: u64,
    /// Standard deviation of the row lengths.
    pub deviation: f64,
    pub longest: u32,
    pub kind: Kind,
    /// Rows that reach a good part of all columns, beside the longest.
    pub dense: &'static [Dense],
    /// Other rows that are unlike the rest.
    pub classes: &'static [Class],
    pub rest: Rest,
}

/// Where a matrix comes from, and with that which columns its rows have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Mostly near the diagonal, with a few dense rows and columns.
    Circuit,
    /// Pages that link to pages of their own host with this probability, and
    /// else to popular hosts.
    Web { local: f64 },
    /// Nearly random.
    Kmer,
}

/// Some dense rows, and how long they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dense {
    /// All the same, and such that the matrix has its deviation.
    ByDeviation { rows: u32 },
    /// Each shorter than the one before by the same factor.
    Falling {
        rows: u32,
        longest: u32,
        shortest: u32,
    },
}

/// Some rows whose lengths are log-logistic with this mean and shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class {
    pub rows: u32,
    pub least: u32,
    pub most: u32,
    pub mean: f64,
    pub shape: f64,
}

/// All other rows. Their mean makes up the nonzeros of the matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rest {
    pub least: u32,
    pub most: u32,
    /// `None`: such that the matrix has its deviation.
    pub shape: Option<f64>,
}

/// All of them, in the order of the table.
pub static KNOWN: [Known; 5] = [
    Known {
        name: "circuit5M",
        rows: 5_558_326,
        nonzeros: 59_524_291,
        deviation: 1356.62,
        longest: 1_290_501,
        kind: Kind::Circuit,
        dense: &[
            Dense::ByDeviation { rows: 5 },
            Dense::Falling {
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
        rest: Rest {
            least: 1,
            most: 9,
            shape: Some(4.0),
        },
    },
    Known {
        name: "eu-2005",
        rows: 862_664,
        nonzeros: 19_235_140,
        deviation: 29.33,
        longest: 6985,
        // The collection says of it that its locality is very low.
        kind: Kind::Web { local: 0.5 },
        dense: &[],
        classes: &[],
        rest: Rest {
            least: 0,
            most: 6984,
            shape: None,
        },
    },
    Known {
        name: "in-2004",
        rows: 1_382_908,
        nonzeros: 16_917_053,
        deviation: 37.23,
        longest: 7753,
        kind: Kind::Web { local: 0.8 },
        dense: &[],
        classes: &[],
        rest: Rest {
            least: 0,
            most: 7752,
            shape: None,
        },
    },
    Known {
        name: "FullChip",
        rows: 2_987_012,
        nonzeros: 26_621_983,
        // Printed as 1806.80, and this over the mean as 202.73: it lies between
        // 1806.803 and 1806.805.
        deviation: 1806.804,
        longest: 2_312_481,
        kind: Kind::Circuit,
        dense: &[
            Dense::ByDeviation { rows: 1 },
            Dense::Falling {
                rows: 4,
                longest: 50_000,
                shortest: 2000,
            },
        ],
        classes: &[],
        rest: Rest {
            least: 1,
            most: 999,
            shape: Some(3.0),
        },
    },
    Known {
        name: "kmer_U1a",
        rows: 67_716_231,
        nonzeros: 138_778_562,
        deviation: 0.37,
        longest: 35,
        kind: Kind::Kmer,
        dense: &[],
        classes: &[],
        rest: Rest {
            least: 1,
            most: 34,
            shape: None,
        },
    },
];

/// Shapes of no matrix in particular: webs and circuits of any size, whose
/// statistics are invented, beside those that are imitated.
pub static SHAPES: [Known; 2] = [
    Known {
        name: "web",
        rows: 1_000_000,
        nonzeros: 15_000_000,
        deviation: 33.0,
        longest: 8000,
        kind: Kind::Web { local: 0.65 },
        dense: &[],
        classes: &[],
        rest: Rest {
            least: 0,
            most: 7999,
            shape: None,
        },
    },
    Known {
        name: "circuit",
        rows: 1_000_000,
        nonzeros: 8_000_000,
        deviation: 900.0,
        longest: 600_000,
        kind: Kind::Circuit,
        dense: &[
            Dense::ByDeviation { rows: 2 },
            Dense::Falling {
                rows: 4,
                longest: 20_000,
                shortest: 2000,
            },
        ],
        classes: &[class(20_000, 10, 99, 20.0)],
        rest: Rest {
            least: 1,
            most: 9,
            shape: Some(3.5),
        },
    },
];

/// Entries a row that a shape can be given.
const MEANS: RangeInclusive<u32> = 4..=64;

const fn class(rows: u32, least: u32, most: u32, mean: f64) -> Class {
    Class {
        rows,
        least,
        most,
        mean,
        shape: 3.0,
    }
}

impl Known {
    /// The one of this name, whatever the case of its letters.
    pub fn find(name: &str) -> Option<&'static Self> {
        let mut known = KNOWN.iter();
        known.find(|known| known.name.eq_ignore_ascii_case(name))
    }

    /// The shape of this name.
    pub fn shape(name: &str) -> Option<&'static Self> {
        SHAPES.iter().find(|shape| shape.name == name)
    }

    /// The shape with so many entries a row: the lengths of rows that are not
    /// dense are multiplied.
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
        let rest = Rest {
            most: longer(self.rest.most),
            ..self.rest
        };
        Ok(match self.kind {
            // Dense rows reach the same part of all columns.
            Kind::Circuit => Self {
                nonzeros,
                rest,
                ..*self
            },
            Kind::Web { .. } | Kind::Kmer => Self {
                nonzeros,
                rest,
                deviation: self.deviation * factor,
                longest: longer(self.longest),
                ..*self
            },
        })
    }

    /// Entries a row, of a shape that has others than the shape of its name.
    pub(super) fn mean_of_its_own(&self) -> Option<u64> {
        let shape = Self::shape(self.name)?;
        (self.nonzeros != shape.nonzeros).then(|| self.nonzeros / u64::from(self.rows))
    }

    /// Whether it is a shape, and no matrix that is imitated.
    pub fn is_shape(&self) -> bool {
        Self::shape(self.name).is_some()
    }
}

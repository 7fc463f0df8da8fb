//! Generates look-alikes of the matrices in the PDAWL paper's Table 3.
//!
//! * `known` has the statistics of the originals.
//! * `fit` finds row lengths with these statistics, from log-logistic
//!   distributions. They are looked up by rank, and a permutation orders the rows.
//! * `web` chooses columns of web graphs and circuits. The columns of k-mer graphs are uniform.
//!
//! docs/matrices.md compares look-alikes with their originals.

mod fit;
mod known;
mod web;

use std::fmt;

use self::web::Circuit;
use known::Kind;
use web::Web;

use self::fit::Fit;
use super::fill;
use super::fill::{fill, mix, starts};
use crate::matrix::MatrixError;
use crate::matrix::control::Control;
use crate::matrix::csr::{self, Csr, MOST};

pub use known::{KNOWN, KnownMatrix};

/// The fewest rows of a look-alike; fewer cannot have the original's statistics.
const FEWEST: u32 = 100;

/// A look-alike of a known matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LookAlike {
    known: KnownMatrix,
    size: Size,
}

impl LookAlike {
    /// A look-alike whose dimension is `scale` times that of `known`.
    ///
    /// # Errors
    /// The reason, when there can be no matrix of that size.
    pub fn new(known: KnownMatrix, scale: f64) -> Result<Self, String> {
        let rows = f64::from(known.rows) * scale;
        if !(scale > 0.0 && rows <= f64::from(MOST)) {
            return Err(format!("a matrix has 1 to {MOST} rows, not {rows:.0}"));
        }
        let rows = rows.round() as u32;
        if rows < FEWEST {
            return Err(format!(
                "{rows} rows are too few to look like anything; at least {FEWEST} are needed"
            ));
        }
        let size = Size {
            rows,
            nonzeros: (known.nonzeros as f64 * scale).round() as u64,
            scale,
        };
        Ok(Self { known, size })
    }

    /// A matrix of a shape with `rows` rows, and `per_row` entries in a row instead of
    /// the shape's own mean.
    ///
    /// # Errors
    /// As [`Self::new`], and when the shape does not allow that mean.
    pub fn shaped(shape: &KnownMatrix, rows: u32, per_row: Option<u32>) -> Result<Self, String> {
        let known = match per_row {
            None => *shape,
            Some(per_row) => shape.with_mean(per_row)?,
        };
        Self::new(known, f64::from(rows) / f64::from(shape.rows))
    }

    /// The name in outputs, which says what the matrix imitates.
    pub fn name(&self) -> String {
        if self.known.is_shape() {
            return self.to_string();
        }
        match self.size.scale {
            1.0 => format!("look-alike of {}", self.known.name),
            scale => format!("look-alike of {} at {scale}", self.known.name),
        }
    }

    /// Generates the matrix.
    ///
    /// # Errors
    /// When the matrix does not fit into memory, and on interruption.
    pub fn generate(
        &self,
        seed: u64,
        memory: Option<u64>,
        control: &mut Control,
    ) -> Result<Csr, MatrixError> {
        let Size { rows, nonzeros, .. } = self.size;
        let needed = csr::matrix_bytes(rows.into(), nonzeros);
        csr::check_memory(&format!("making a {}", self.name()), needed, memory)?;
        control.report("generating", 0, 0)?;
        let lengths = RowLengths::of(&self.known, self.size);
        let order = Permutation::new(rows, seed);
        let starts = starts(rows, control, |row| lengths.of_rank(order.of(row)).into())?;
        match self.known.kind {
            Kind::Circuit => {
                let circuit = Circuit::new(&starts);
                fill(starts, seed, control, |row, random, out| {
                    circuit.row(row, random, out);
                })
            }
            Kind::Web { local } => {
                let web = Web::new(rows, local, seed);
                fill(starts, seed, control, |row, random, out| {
                    web.row(row, random, out);
                })
            }
            Kind::Kmer => fill(starts, seed, control, |_, random, out| {
                fill::uniform(out, rows, random);
            }),
        }
    }
}

impl fmt::Display for LookAlike {
    /// As on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.known.is_shape() {
            write!(f, "{}:{}", self.known.name, self.size.rows)?;
            return match self.known.changed_mean() {
                None => Ok(()),
                Some(per_row) => write!(f, ",{per_row}"),
            };
        }
        match self.size.scale {
            1.0 => write!(f, "like:{}", self.known.name),
            scale => write!(f, "like:{}@{scale}", self.known.name),
        }
    }
}

#[cfg(test)]
mod tests;

/// Row lengths of a matrix, longest first.
#[derive(Clone, Debug, PartialEq)]
struct RowLengths {
    lengths: Vec<u32>,
    /// For each length, how many rows are at least as long.
    ends: Vec<u32>,
}

/// The size of a look-alike.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Size {
    pub rows: u32,
    pub nonzeros: u64,
    /// The dimension over that of the known matrix.
    pub scale: f64,
}

impl RowLengths {
    /// The row lengths of a look-alike of this size.
    pub fn of(known: &KnownMatrix, size: Size) -> Self {
        let mut counts = Fit::of(known, size).counts(known, size);
        counts.sort_by_key(|count| std::cmp::Reverse(count.length));
        let ends = counts.iter().scan(0, |end, count| {
            *end += count.rows;
            Some(*end)
        });
        Self {
            ends: ends.collect(),
            lengths: counts.iter().map(|count| count.length).collect(),
        }
    }

    /// The length of the row that has `rank` rows before it.
    pub fn of_rank(&self, rank: u32) -> u32 {
        let index = self.ends.partition_point(|end| *end <= rank);
        self.lengths.get(index).copied().unwrap_or(0)
    }
}

// A random permutation of rows that takes no memory: a Feistel network on row numbers,
// applied again while its result is too large.

/// Rounds after which the order looks random. A round changes both parts.
const ROUNDS: u64 = 2;

/// A permutation of `0..count`.
#[derive(Clone, Copy, Debug)]
struct Permutation {
    count: u32,
    /// Bits of a number's lower part.
    low_bits: u32,
    /// Masks of the bits of both parts.
    low: u64,
    high: u64,
    seed: u64,
}

impl Permutation {
    pub fn new(count: u32, seed: u64) -> Self {
        let bits = u32::BITS - count.saturating_sub(1).leading_zeros();
        Self {
            count,
            low_bits: bits / 2,
            low: (1 << (bits / 2)) - 1,
            high: (1 << bits.div_ceil(2)) - 1,
            seed: mix(seed),
        }
    }

    /// The image of a number below `count`.
    pub fn of(&self, number: u32) -> u32 {
        let mut place = self.once(number.into());
        while place >= self.count.into() {
            place = self.once(place);
        }
        place as u32
    }

    /// One application of the network: each part in turn is changed by the other.
    fn once(&self, number: u64) -> u64 {
        let (mut high, mut low) = (number >> self.low_bits, number & self.low);
        for round in 0..ROUNDS {
            high ^= mix(self.seed ^ low ^ (2 * round) << 60) & self.high;
            low ^= mix(self.seed ^ high ^ (2 * round + 1) << 60) & self.low;
        }
        high << self.low_bits | low
    }
}

//! Generates look-alikes of the matrices in the PDAWL paper's Table 3.
//!
//! * `known` has the statistics of the originals.
//! * `fit` finds row lengths with these statistics, from `log_logistic`
//!   distributions. `lengths` looks them up by rank, and `permutation` orders the
//!   rows.
//! * `circuit` and `web` choose columns. The columns of k-mer graphs are uniform.
//!
//! docs/matrices.md compares look-alikes with their originals.

mod circuit;
mod fit;
mod known;
mod lengths;
mod log_logistic;
mod permutation;
mod web;

use std::fmt;

use circuit::Circuit;
use known::Kind;
use lengths::{RowLengths, Size};
use permutation::Permutation;
use web::Web;

use super::columns;
use super::fill::{fill, starts};
use crate::matrix::control::Control;
use crate::matrix::csr::{Csr, MOST};
use crate::matrix::error::MatrixError;
use crate::matrix::memory;

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
        let needed = memory::matrix_bytes(rows.into(), nonzeros);
        memory::check(&format!("making a {}", self.name()), needed, memory)?;
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
                columns::uniform(out, rows, random);
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

//! Matrices that look like those of the PDAWL paper's Table 3.
//!
//! * `known` is what is known of the originals.
//! * `fit` finds row lengths with their statistics, out of `spread`s; `lengths`
//!   are what it found, and `permutation` says which row has which.
//! * `circuit` and `web` choose columns; those of k-mer graphs are anywhere.
//!
//! docs/matrices.md says what is alike and what is not.

mod circuit;
mod fit;
mod known;
mod lengths;
mod permutation;
mod spread;
mod web;

use std::fmt;

use circuit::Circuit;
use known::Kind;
use lengths::{RowLengths, Size};
use permutation::Permutation;
use web::Web;

use super::columns::spread as anywhere;
use super::fill::{Plan, check_room, fill, starts};
use crate::matrix::control::Control;
use crate::matrix::csr::{Csr, MOST};
use crate::matrix::error::MatrixError;

pub use known::{KNOWN, Known};

/// The fewest rows that can have the statistics of thousands of times as many.
const FEWEST: u32 = 100;

/// A look-alike of a known matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LookAlike {
    known: Known,
    size: Size,
}

impl LookAlike {
    /// A look-alike whose dimension is `scale` times that of `known`.
    ///
    /// # Errors
    /// Saying why, when there is no matrix of that size.
    pub fn new(known: Known, scale: f64) -> Result<Self, String> {
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

    /// A matrix of a shape with so many rows, and so many entries a row instead
    /// of the shape's own.
    ///
    /// # Errors
    /// As [`Self::new`], or when the shape has no room for as many, or needs
    /// more.
    pub fn shaped(shape: &Known, rows: u32, per_row: Option<u32>) -> Result<Self, String> {
        let known = match per_row {
            None => *shape,
            Some(per_row) => shape.with_mean(per_row)?,
        };
        Self::new(known, f64::from(rows) / f64::from(shape.rows))
    }

    /// Says what it is a look-alike of.
    pub fn name(&self) -> String {
        if self.known.is_shape() {
            return self.to_string();
        }
        match self.size.scale {
            1.0 => format!("look-alike of {}", self.known.name),
            scale => format!("look-alike of {} at {scale}", self.known.name),
        }
    }

    /// Makes it.
    ///
    /// # Errors
    /// When it has no room, or on request.
    pub fn generate(
        &self,
        seed: u64,
        memory: Option<u64>,
        control: &mut Control,
    ) -> Result<Csr, MatrixError> {
        let Size { rows, nonzeros, .. } = self.size;
        check_room(&format!("a {}", self.name()), rows.into(), nonzeros, memory)?;
        control.tell("generating", 0, 0)?;
        let lengths = RowLengths::of(&self.known, self.size);
        let order = Permutation::new(rows, seed);
        let starts = starts(rows, control, |row| lengths.of_rank(order.of(row)).into())?;
        let plan = |starts| Plan {
            rows,
            columns: rows,
            seed,
            starts,
        };
        match self.known.kind {
            Kind::Circuit => {
                let circuit = Circuit::new(&starts);
                fill(plan(starts), control, |row, random, out| {
                    circuit.row(row, random, out);
                })
            }
            Kind::Web { local } => {
                let web = Web::new(rows, local, seed);
                fill(plan(starts), control, |row, random, out| {
                    web.row(row, random, out);
                })
            }
            Kind::Kmer => fill(plan(starts), control, |_, random, out| {
                anywhere(out, rows, random);
            }),
        }
    }
}

impl fmt::Display for LookAlike {
    /// As users say it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.known.is_shape() {
            write!(f, "{}:{}", self.known.name, self.size.rows)?;
            return match self.known.mean_of_its_own() {
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

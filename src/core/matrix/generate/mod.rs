//! Generates matrices from a seed. They are the same on every machine and for every
//! number of cores.
//!
//! * [`lookalike`] imitates the matrices of the PDAWL paper; `generators`
//!   make simple shapes.
//! * `fill` fills a matrix row by row, and draws the columns of a row by random numbers
//!   that are the same everywhere.

mod fill;
mod generators;
pub mod lookalike;

pub use generators::{banded, rmat, uniform};

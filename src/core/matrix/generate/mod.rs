//! Generates matrices from a seed. They are the same on every machine and for every
//! number of cores.
//!
//! * [`lookalike`] imitates the matrices of the PDAWL paper; `simple` and `rmat`
//!   make simple shapes.
//! * `fill` fills a matrix row by row, and draws the columns of a row by random numbers
//!   that are the same everywhere.

mod fill;
pub mod lookalike;
mod rmat;
mod simple;

pub use rmat::rmat;
pub use simple::{banded, uniform};

//! Generates matrices from a seed. They are the same on every machine and for every
//! number of cores.
//!
//! * [`lookalike`] imitates the matrices of the PDAWL paper; `simple` and `rmat`
//!   make simple shapes.
//! * `fill` fills a matrix row by row, `columns` draws the columns of a row, and
//!   `random` has the random numbers.

mod columns;
mod fill;
pub mod lookalike;
mod random;
mod rmat;
mod simple;

pub use rmat::rmat;
pub use simple::{banded, uniform};

//! Matrices that are made instead of read: seeded, and the same on every
//! machine whatever the number of its cores.
//!
//! * [`lookalike`] imitates the matrices of the PDAWL paper; `simple` and `rmat`
//!   are plain shapes.
//! * `fill` makes a matrix row by row, `columns` chooses a row's columns, and
//!   `random` is where chance comes from.

mod columns;
mod fill;
pub mod lookalike;
mod random;
mod rmat;
mod simple;

pub use rmat::rmat;
pub use simple::{banded, uniform};

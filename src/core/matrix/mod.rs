//! Sparse matrices in memory, and where they come from; dense ones in files. A matrix
//! knows no workload and no device.
//!
//! * [`csr`] is a matrix in memory, in compressed sparse rows, checked once. Its arrays are
//!   its own, or [`Shared`] ones of somebody else's.
//! * [`source`] names a source of matrices: [`market`] reads and writes Matrix Market
//!   files, `cache` keeps binary copies beside them, and [`generate`] makes matrices.
//! * [`stats`] has the statistics of a matrix.
//! * [`npy`] reads dense matrices from NPY files, tile by tile, and writes them.
//! * `assemble` sorts entries into rows, `rows` divides a matrix's arrays among
//!   threads, and `parallel` runs these. `memory` checks that a matrix fits,
//!   `checksum` detects changed files, `transpose` exchanges rows and columns, and [`control`] is progress and interruption.

mod assemble;
mod cache;
mod checksum;
pub mod control;
pub mod csr;
pub mod error;
pub mod generate;
mod in_its_place;
pub mod market;
mod memory;
pub mod npy;
mod parallel;
mod rows;
mod shared;
pub mod source;
pub mod stats;
mod transpose;

#[cfg(test)]
mod fixtures;

pub use cache::{is_binary, write as write_binary};
pub use control::{Control, Progress};
pub use csr::{Csr, CsrError};
pub use error::{FileError, MatrixError};
pub use shared::Shared;
pub use source::{Loaded, MatrixSource, Origin};
pub use stats::Stats;

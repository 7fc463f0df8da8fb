//! Sparse matrices: what they are, where they come from, and what can be told
//! of them without a device.
//!
//! * [`csr`] is a matrix in memory, compressed sparse rows, checked once.
//! * [`source`] is where one comes from, as users say it: [`market`] reads and
//!   writes Matrix Market files, `cache` keeps a binary copy beside them, and
//!   [`generate`] makes matrices.
//! * [`stats`] is what can be told of one.
//! * `assemble` turns entries in any order into rows, `parallel` shares work
//!   among threads, `memory` asks for room before it begins, `checksum` tells
//!   files apart, and [`control`] is who waits for all that.
//!
//! A matrix knows no workload and no device; workloads and models are built on
//! top of it.

mod assemble;
mod cache;
mod checksum;
pub mod control;
pub mod csr;
pub mod error;
pub mod generate;
pub mod market;
mod memory;
pub(crate) mod parallel;
pub mod source;
pub mod stats;

#[cfg(test)]
mod testbed;

pub use cache::{is_binary, write as write_binary};
pub use control::{Control, Progress};
pub use csr::{Csr, CsrError};
pub use error::{FileError, MatrixError};
pub use source::{Loaded, MatrixSource, Origin};
pub use stats::Stats;

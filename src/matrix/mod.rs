//! Sparse matrices: what they are, where they come from, and what can be told
//! of them without a device.
//!
//! * [`csr`] is a matrix in memory, compressed sparse rows, checked once.
//!
//! A matrix knows no workload and no device; workloads and models are built on
//! top of it.

pub mod csr;

pub use csr::{Csr, CsrError};

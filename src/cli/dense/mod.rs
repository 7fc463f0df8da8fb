//! `pdawl run matmul` and `pdawl run cholesky`: products and factorisations of dense
//! matrices in host memory.
//!
//! [`matmul`] and [`cholesky`] have the arguments that differ, [`options`] those that both have,
//! and [`input`] the given files. [`cluster`](super::cluster) runs them.

pub mod cholesky;
mod input;
pub mod matmul;
pub mod options;

pub use input::precision;
pub use options::POLICY;

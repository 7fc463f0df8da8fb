//! `pdawl run matmul` and `pdawl run cholesky`: products and factorisations of dense
//! matrices in host memory.
//!
//! * [`matmul`] and [`cholesky`] have the arguments that differ, [`options`] those that
//!   both have, and [`input`] the given files;
//! * [`sizes`] chooses tiles, and checks that everything fits in memory;
//! * [`run_job`] runs and reports; [`result`] checks the result and writes it.

pub mod cholesky;
mod input;
pub mod matmul;
pub mod options;
mod result;
mod run_job;
mod sizes;

pub use input::precision;
pub use options::POLICY;

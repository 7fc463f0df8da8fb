//! Workloads over the nodes of a cluster, real and simulated.

pub mod convolution;
pub mod fft;
mod files;
pub mod kernel;
pub mod lu;
pub mod matmul;
mod options;
mod prepared;
mod run;
pub mod scaling;
mod simulated;
pub mod sort;
pub mod sparse;
pub mod stencil;

pub use files::ResultFile;
pub use options::{NodeOptions, at_rank, refuse};
pub use prepared::PreparedWorkload;
pub use run::{ClusterJob, run_job};

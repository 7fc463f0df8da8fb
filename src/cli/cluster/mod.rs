//! Workloads over the nodes of a cluster, real and simulated.

pub mod convolution;
pub mod fft;
pub mod lu;
pub mod matmul;
mod options;
mod prepared;
mod run;
pub mod scaling;
mod simulated;
pub mod stencil;

pub use options::{NodeOptions, refuse};
pub use run::{ClusterJob, run_job};

//! Workloads over the nodes of a cluster.

pub mod convolution;
pub mod fft;
mod files;
pub mod lu;
pub mod matmul;
mod options;
mod run;
pub mod sparse;
pub mod stencil;

pub use options::{NodeOptions, at_rank, refuse};

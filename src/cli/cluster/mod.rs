//! Workloads over the nodes of a cluster.

pub mod convolution;
pub mod fft;
pub mod lu;
mod options;
mod run;

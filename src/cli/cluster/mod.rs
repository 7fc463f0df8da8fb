//! Workloads over the nodes of a cluster, real and simulated.

mod alone;
mod asked;
pub mod convolution;
pub mod fft;
mod files;
mod joined;
pub mod kernel;
pub mod lu;
pub mod matmul;
mod options;
mod prepared;
mod run;
mod simulated;
pub mod sort;
pub mod sparse;
pub mod stencil;

pub use asked::asked;
pub use files::{ResultArray, ResultFile};
pub use joined::JoinOptions;
pub use options::{NodeOptions, is_first, lone_machine};
pub use prepared::PreparedWorkload;
pub use run::{ClusterJob, Prepared, run_job};

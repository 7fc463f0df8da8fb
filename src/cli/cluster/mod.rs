//! Workloads over the nodes of a cluster, real and simulated.

pub mod alone;
mod asked;
pub mod convolution;
pub mod fft;
mod files;
mod joined;
pub mod kernel;
pub mod lu;
mod options;
mod prepared;
mod run;
mod simulated;
pub mod sort;
pub mod sparse;
pub mod stencil;

pub use alone::LoneJob;
pub use asked::asked;
pub use files::{ResultArray, ResultFile};
pub use joined::JoinOptions;
pub use options::{NodeOptions, is_first, lone_machine};
pub use prepared::{OperationJob, PreparedWorkload};
pub use run::{ClusterJob, Prepared, run_job};

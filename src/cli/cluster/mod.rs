//! Workloads over the nodes of a cluster, real and simulated.

mod alone;
mod asked;
mod files;
mod joined;
pub mod kernel;
mod options;
mod prepared;
mod run;
mod simulated;
pub mod sparse;
pub mod stencil;

pub use asked::asked;
pub use files::{ResultArray, ResultFile};
pub use joined::JoinOptions;
pub use options::{NodeOptions, is_first, lone_machine};
pub use prepared::{OperationJob, PreparedWorkload};
pub use run::{ClusterJob, Prepared, of_run, run_job};

//! Workloads over the nodes of a cluster, real and simulated.

mod asked;
mod files;
mod joined;
mod options;
mod run;

pub use asked::asked;
pub use files::{ResultArray, ResultFile};
pub use joined::JoinOptions;
pub use options::{NodeOptions, is_first, lone_machine};
pub use run::{ClusterJob, OperationJob, Prepared, Work, of_run, run_job};

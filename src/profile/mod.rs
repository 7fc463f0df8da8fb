//! Designed profiling: what to run so that a cost model can learn a machine,
//! and running it (Geng et al., section 4.3: pure-CPU and pure-GPU runs).
//!
//! * [`configuration`] is one thing to run: a grid, a device and its setting.
//! * [`design`](mod@design) chooses configurations that span a machine's sizes, workers,
//!   chunks and memory limits, the most informative first; pure.
//! * [`schedule`](mod@schedule) orders their repeats; pure.
//! * [`machine`] is the machine under profile: this one, or a simulated one.
//! * [`run`] measures one run; [`mod@sums`] and `instruments` turn its trace, counters
//!   and sensors into features.
//! * [`session`] measures a list of runs within a time budget, and [`expectation`]
//!   estimates how long they take. [`stencil`] and [`product`] prepare the runs.
//! * [`kernels`] keeps the times of single kernels from run to run, as MultiCL does.

pub mod configuration;
pub mod design;
mod error;
pub mod expectation;
mod instruments;
pub mod kernels;
pub mod machine;
pub mod product;
pub mod run;
pub mod schedule;
pub mod session;
pub mod stencil;
pub mod sums;

#[cfg(test)]
mod tests;

pub use configuration::{Configuration, DeviceUse, Grid, ModelKind, Setting};
pub use design::{Space, design};
pub use error::ProfileError;
pub use machine::ProfiledMachine;
pub use run::{PreparedRun, Settings};
pub use schedule::{ProfileRun, schedule};
pub use session::{Budget, ProfilingSession, RowStore, SessionProgress, SessionSummary};

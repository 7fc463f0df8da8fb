//! Designed profiling: what to run so that a cost model can learn a machine,
//! and running it (Geng et al., section 4.3: pure-CPU and pure-GPU runs).
//!
//! * [`configuration`] is one thing to run: a grid, a device and its setting.
//! * [`design`](mod@design) chooses configurations that span a machine's sizes, workers,
//!   chunks and memory limits, the most informative first; pure.
//! * [`schedule`] orders their repeats; pure.
//! * [`machine`] is the machine under profile: this one, or a simulated one.
//! * [`run`] measures one run, and turns its trace, counters and sensors into
//!   features.
//! * [`session`] measures a list of runs within a time budget, which it estimates.
//!   [`stencil`] and [`product`] say what they compute.
//! * [`kernels`] keeps the times of single kernels from run to run, as MultiCL does. It is
//!   all that is here without the crate's feature `models`.

#[cfg(feature = "models")]
pub mod configuration;
#[cfg(feature = "models")]
pub mod design;
#[cfg(feature = "models")]
mod error;
pub mod kernels;
#[cfg(feature = "models")]
pub mod machine;
#[cfg(feature = "models")]
pub mod product;
#[cfg(feature = "models")]
pub mod run;
#[cfg(feature = "models")]
pub mod session;
#[cfg(feature = "models")]
pub mod stencil;

#[cfg(all(test, feature = "models"))]
mod tests;

#[cfg(feature = "models")]
pub use configuration::{Configuration, DeviceUse, Grid, ModelKind, Setting};
#[cfg(feature = "models")]
pub use design::{Space, design};
#[cfg(feature = "models")]
pub use error::ProfileError;
#[cfg(feature = "models")]
pub use machine::ProfiledMachine;
#[cfg(feature = "models")]
pub use run::{PreparedRun, Settings};
#[cfg(feature = "models")]
pub use session::{Budget, ProfilingSession, RowStore, SessionProgress, SessionSummary};
#[cfg(feature = "models")]
pub use stencil::{ProfileRun, schedule};

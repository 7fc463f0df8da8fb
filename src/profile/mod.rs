//! Designed profiling: what to run so that a cost model can learn a machine,
//! and running it (Geng et al., section 4.3: pure-CPU and pure-GPU runs).
//!
//! * [`configuration`] is one thing to run: a grid, a device and its setting.
//! * [`design`](mod@design) chooses configurations that span a machine's sizes, workers,
//!   chunks and memory limits, the most telling first; pure.
//! * [`schedule`](mod@schedule) orders their repeats; pure.
//! * [`product`] does the same for products of matrices.
//! * [`machine`] is where they run: this machine, or a simulated one.
//! * [`run`] measures one, [`mod@sums`] and `watch` make figures of what was seen
//!   on the way, [`expectation`] tells how long it will take, and [`session`] goes through all of them within a time
//!   budget, handing on each row as it is measured.

pub mod configuration;
pub mod design;
mod error;
pub mod expectation;
mod instruments;
pub mod machine;
pub mod product;
pub mod run;
pub mod schedule;
pub mod session;
pub mod sums;

#[cfg(test)]
mod tests;

pub use configuration::{Configuration, DeviceUse, Grid, ModelKind, Setting};
pub use design::{Space, design};
pub use error::ProfileError;
pub use machine::ProfiledMachine;
pub use run::Settings;
pub use schedule::{ProfileRun, schedule};
pub use session::{ProfilingSession, SessionProgress, SessionSummary};

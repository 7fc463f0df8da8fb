//! Designed profiling: what to run so that a cost model can learn a machine,
//! and running it (Geng et al., section 4.3: pure-CPU and pure-GPU runs).
//!
//! * [`configuration`] is one thing to run: a grid, a device and its setting.
//! * [`design`](mod@design) chooses configurations that span a machine's sizes, workers,
//!   chunks and memory limits, the most telling first; pure.
//! * [`schedule`](mod@schedule) orders their repeats; pure.
//! * [`product`] does the same for products of matrices.
//! * [`ground`] is where they run: this machine, or a simulated one.
//! * [`run`] measures one, [`mod@sums`] and `watch` make figures of what was seen
//!   on the way, [`expectation`] tells how long it will take, and [`campaign`] goes through all of them within a time
//!   budget, handing on each row as it is measured.

pub mod campaign;
pub mod configuration;
pub mod design;
mod error;
pub mod expectation;
pub mod ground;
pub mod product;
pub mod run;
pub mod schedule;
pub mod sums;
mod watch;

#[cfg(test)]
mod tests;

pub use campaign::{Campaign, Progress, Summary};
pub use configuration::{Configuration, Grid, Kind, Seat, Setting};
pub use design::{Space, design};
pub use error::ProfileError;
pub use ground::Ground;
pub use run::Settings;
pub use schedule::{Run, schedule};

//! Acting: the only drivers of a runtime.
//!
//! [`outcome`] is what an engine returns; [`measure`] drives a runtime to
//! measure the machine behind it, [`trial`] to compare forms of a codelet, and
//! [`scope`] releases what they allocate. [`first_launch`] examines users' kernels in a process
//! of their own.
//! `membership` decides which devices take part.

pub mod cluster;
pub mod corun;
pub mod first_launch;
pub mod graph;
mod in_flight;
pub mod measure;
mod membership;
pub mod oracle;
pub mod outcome;
pub mod scope;
pub mod trial;

pub use outcome::{DeviceRecord, Loss, Outcome, StepRecord};

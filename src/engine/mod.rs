//! Acting: the only drivers of a runtime.
//!
//! [`outcome`] is what an engine returns; [`measure`] drives a runtime to
//! measure the machine behind it, [`trial`] to compare forms of a codelet, and
//! [`scope`] releases what they allocate. [`watched`] has the moments of a watched launch.
//! `membership` decides which devices take part.

pub mod cluster;
pub mod corun;
pub mod graph;
mod in_flight;
pub mod measure;
mod membership;
pub mod oracle;
pub mod outcome;
pub mod scope;
pub mod trial;
pub mod watched;

pub use outcome::{DeviceRecord, Loss, Outcome, StepRecord};

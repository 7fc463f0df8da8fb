//! Acting: the only drivers of a runtime.
//!
//! [`outcome`] is what an engine gives back; [`measure`] drives a runtime to
//! measure the machine behind it, [`trial`] to compare forms of a codelet.

pub mod corun;
pub mod graph;
pub mod measure;
pub mod oracle;
pub mod outcome;
pub mod trial;

pub use outcome::{DeviceRecord, Loss, Outcome, StepRecord};

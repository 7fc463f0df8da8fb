//! Acting: the only drivers of a runtime.
//!
//! [`outcome`] is what an engine gives back.

pub mod corun;
pub mod outcome;

pub use outcome::{DeviceRecord, Loss, Outcome, StepRecord};

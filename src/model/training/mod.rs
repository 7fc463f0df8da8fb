//! From a machine's samples to the models of a bundle.
//!
//! [`groups`] sorts samples by kind of device and codelet; each group gets
//! models of its own. [`tables`] turns a group's samples into the numbers that
//! models are fitted to: once with what is known before a run, for the model
//! that plans, and once with what counters, traces and telemetry told of it,
//! for the model that explains.

pub mod groups;
pub mod tables;

pub use groups::{Group, groups};

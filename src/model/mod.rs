//! From a codelet, a size and a configuration to features, and from features
//! to predicted seconds and plans.
//!
//! * [`case`] is one device's part in a step of a workload, and [`descriptors`]
//!   what a machine file says of the device: together, everything that is known
//!   before a run;
//! * [`features`] are both as numbers with names, [`record`] the same as a
//!   dataset's row;
//! * [`prior`] is the physics of a step, and [`baseline`] what a trained model
//!   has to beat.
//!
//! **Planning uses features known beforehand.** What counters, traces and
//! telemetry tell is known only after a run; it explains, and never plans.

pub mod baseline;
pub mod case;
mod derived;
pub mod descriptors;
pub mod features;
pub mod prior;
pub mod record;
#[cfg(test)]
mod testbed;

pub use case::{Case, Part, Work};
pub use descriptors::Descriptors;
pub use record::RecordError;

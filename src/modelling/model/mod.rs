//! From a codelet, a size and a configuration to features, and from features
//! to predicted seconds and plans.
//!
//! * [`case`] is one device's part in a step of a workload, and [`descriptors`]
//!   what a machine file says of the device: together, everything that is known
//!   before a run;
//! * [`matrix`] has the figures of a product's matrix, `footprint` counts those
//!   that caches have to do with;
//! * [`features`] are both as numbers with names, [`record`] the same as a
//!   dataset's row;
//! * [`prior`] is the physics of a step, and [`baseline`] what a trained model
//!   has to beat.
//! * a [`StepTime`] predicts the seconds of a step: a [`Predictor`] is a trained
//!   model bound to a machine, and [`Physics`] the prior alone; [`planner`]
//!   makes plans of them, and [`serving`] finds the model of open devices with its plan.
//! * [`store`] is where models and measured runs are kept, [`training`] makes models of
//!   them, [`evaluate`](mod@evaluate) says how good these are, and [`store`] is where
//!   they are kept. [`command`] is how users are sent to train one.
//!
//! **Planning uses features known beforehand.** What counters, traces and
//! telemetry tell is known only after a run; it explains, and never plans.

pub mod adapt;
pub mod baseline;
pub mod case;
pub mod command;
pub mod descriptors;
pub mod evaluate;
pub mod features;
#[cfg(test)]
mod fixtures;
pub mod matrix;
pub mod planner;
pub mod predictor;
pub mod prior;
pub mod record;
pub mod serving;
pub mod store;
pub mod training;

pub use case::{Case, DevicePart, StepWork};
pub use descriptors::Descriptors;
pub use matrix::MatrixFigures;
pub use predictor::{Outside, Physics, Predictor, PredictorError, StepTime};
pub use record::RecordError;
pub use store::ModelStore;

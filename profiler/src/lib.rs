//! From measured runs to cost models.
//!
//! A [`Sample`] is one run: its device and configuration, named figures, and seconds.
//! Its figures come from the caller, from counters ([`counters`]) and from telemetry
//! ([`telemetry`]); samples are kept as CSV ([`dataset`]). A [`Table`] of samples'
//! features is what [`train`] fits models to: features are clustered ([`cluster`]),
//! regressions fitted ([`regress`]) and compared by cross-validation ([`validate`]). A
//! [`Fitted`] model predicts the seconds of a step; a [`bundle`] is the file in which
//! models travel, and [`adapt`] corrects a foreign one. Files are
//! written by [`atomic_file`], and errors of the system are a [`file_error::FileError`].
//!
//! The feature `instruments` has counters and telemetry, and `models` all that has to do
//! with datasets and models; both are on unless asked otherwise. Without them remain
//! samples, medians and the files.
//!
//! This crate knows named numbers. It knows no device, no workload, no
//! runtime, and not where a feature comes from.

#[cfg(feature = "models")]
pub mod adapt;
pub mod atomic_file;
#[cfg(feature = "models")]
pub mod bundle;
#[cfg(feature = "models")]
pub mod cluster;
#[cfg(feature = "instruments")]
pub mod counters;
#[cfg(feature = "models")]
pub mod dataset;
pub mod file;
#[cfg(feature = "models")]
pub mod file_error;
#[cfg(feature = "models")]
pub mod fitted;
mod median;
#[cfg(feature = "models")]
#[cfg(feature = "models")]
pub mod regress;
pub mod sample;
#[cfg(feature = "models")]
pub mod table;
#[cfg(feature = "instruments")]
pub mod telemetry;
#[cfg(feature = "models")]
pub mod train;
#[cfg(feature = "models")]
pub mod validate;

#[cfg(feature = "models")]
pub use fitted::Fitted;
pub use median::median;
pub use sample::Sample;
#[cfg(feature = "models")]
pub use table::{Row, Table};

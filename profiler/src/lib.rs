//! From measured runs to cost models.
//!
//! A [`Sample`] is one run: its device and configuration, named figures, and seconds.
//! Its figures come from the caller, from counters ([`counters`]) and from telemetry
//! ([`telemetry`]); samples are kept as CSV ([`dataset`]). A [`Table`] of samples'
//! features is what [`train`] fits models to: features are clustered ([`cluster`]),
//! regressions fitted ([`regress`]) and compared by cross-validation ([`validate`]). A
//! [`Fitted`] model predicts the seconds of a step; a [`bundle`] is the file in which
//! models travel, and [`adapt`] corrects a foreign one. [`plot`] draws. Files are
//! written by [`atomic_file`], and errors of the system are a [`file::FileError`].
//!
//! This crate knows named numbers. It knows no device, no workload, no
//! runtime, and not where a feature comes from.

pub mod adapt;
pub mod atomic_file;
pub mod bundle;
pub mod cluster;
pub mod counters;
pub mod dataset;
pub mod file;
pub mod fitted;
mod median;
pub mod plot;
pub mod regress;
pub mod sample;
pub mod table;
pub mod telemetry;
pub mod train;
pub mod validate;

pub use fitted::Fitted;
pub use median::median;
pub use sample::Sample;
pub use table::{Row, Table};

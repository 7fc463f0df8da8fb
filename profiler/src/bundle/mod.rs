//! Model files: one JSON file with everything that a prediction on another machine
//! needs, and everything that says how far to believe it.
//!
//! The first keys are `format`, always [`FORMAT`], and `checksum`, the SHA-256
//! of everything else in a canonical form (keys sorted, no blanks), so that
//! reformatting a file changes nothing and any other change is noticed.
//!
//! * A [`Bundle`] has an [`CodeletModel`] for each kind of device and codelet.
//! * `file` reads and writes it; [`BundleError`] says what is wrong with a file, and what
//!   to do.
//! * `check` refuses values that no training gives.

mod check;
mod file;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use file::{BundleError, FORMAT};

use crate::dataset::Provenance;
use crate::fitted::Fitted;
use crate::train::Validation;

/// A machine's models. In a file, unknown members, missing ones and a wrong checksum are
/// errors.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    /// What users call it.
    pub name: String,
    /// The version of the program that trained it.
    pub version: String,
    /// The machine that was profiled.
    pub machine: String,
    /// Whether the times that it learned are virtual.
    pub simulated: bool,
    /// The machine's fingerprint, if it is a particular one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// When it was trained: seconds since 1970 in UTC.
    pub trained_at: u64,
    /// Where the runs come from that it learned: pairs of a key and a value.
    pub provenance: Provenance,
    /// What a model for another machine was corrected from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapted: Option<Adapted>,
    /// The machine's description, in the form of the program that trained the model.
    pub machine_file: Value,
    /// One for each kind of device and codelet.
    pub models: Vec<CodeletModel>,
}

impl Bundle {
    /// The model of a kind of device (`cpu` or `gpu`) and a codelet.
    pub fn find(&self, kind: &str, codelet: &str) -> Option<&CodeletModel> {
        (self.models.iter()).find(|entry| entry.kind == kind && entry.codelet == codelet)
    }
}

/// The model of a codelet on a kind of device.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeletModel {
    /// `cpu` or `gpu`.
    pub kind: String,
    pub codelet: String,
    /// Runs that it learned, and how many configurations they were of.
    pub rows: usize,
    pub configurations: usize,
    /// Of every feature that was known before these runs, whether the model
    /// uses it or not: what is outside was never seen.
    pub ranges: BTreeMap<String, Range>,
    /// Predicts the seconds of a step from what is known beforehand.
    pub fitted: Fitted,
    /// How it was chosen, and how good it is.
    pub validation: Validation,
    /// A model that uses counters and traces as well, where runs had them: not for
    /// planning, but to show what the time depends on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explaining: Option<Explaining>,
}

/// A model that needs a run's counters.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Explaining {
    pub fitted: Fitted,
    pub validation: Validation,
}

/// The values of a feature in the training, in its own unit.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    pub min: f64,
    pub max: f64,
}

impl Range {
    /// The range of some values; `None` of none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let range = |range: Option<Self>, value: f64| match range {
            None => Some(Self {
                min: value,
                max: value,
            }),
            Some(range) => Some(Self {
                min: range.min.min(value),
                max: range.max.max(value),
            }),
        };
        values.into_iter().fold(None, range)
    }

    /// Whether the training saw values on both sides.
    pub fn holds(&self, value: f64) -> bool {
        self.min <= value && value <= self.max
    }
}

/// What a model for another machine was corrected from.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adapted {
    /// The machine whose model it was.
    pub machine: String,
    /// The checksum of that model's file.
    pub checksum: String,
    /// Calibration runs on the machine that it is for now.
    pub runs: usize,
}

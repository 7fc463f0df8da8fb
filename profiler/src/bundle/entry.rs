//! One model of a bundle.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fitted::Fitted;
use crate::train::Validation;

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

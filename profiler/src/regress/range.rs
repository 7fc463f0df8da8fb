//! The range of a number in the training.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far outside of the training a number is followed, in widths of its
/// range. Further out it counts as that far.
const MARGIN: f64 = 0.5;

/// The smallest and the largest value of a number in the training.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    pub low: f64,
    pub high: f64,
}

impl Range {
    /// The range of some values.
    pub fn of<'a>(values: impl IntoIterator<Item = &'a f64>) -> Range {
        let empty = Range {
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
        };
        values.into_iter().fold(empty, |range, &value| Range {
            low: range.low.min(value),
            high: range.high.max(value),
        })
    }

    /// Whether it is one: finite, and not upside down.
    pub fn is_valid(&self) -> bool {
        self.low.is_finite() && self.high.is_finite() && self.low <= self.high
    }

    /// `value`, no further outside than half of the width.
    pub fn limit(&self, value: f64) -> f64 {
        let margin = MARGIN * (self.high - self.low);
        value.clamp(self.low - margin, self.high + margin)
    }
}

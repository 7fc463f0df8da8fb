//! An input of a model: a named figure, its unit's scale, what was seen of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A positive figure whose largest value is this many times its smallest is taken as a
/// logarithm: sizes, bytes and rates differ by factors.
const WIDE: f64 = 4.0;

/// The least value of which a logarithm is taken.
const TINY: f64 = 1e-12;

/// An input and how it is standardised.
#[derive(Clone, Debug, Deserialize, PartialEq, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// `group.what_unit`, as in a sample.
    pub name: String,
    /// Whether its logarithm is standardised instead of itself.
    pub log: bool,
    /// The mean in the training, of the logarithm if `log`.
    pub mean: f64,
    /// The deviation in the training, likewise; 0 for a constant.
    pub deviation: f64,
    /// The smallest value of the training, in the name's unit.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Input {
    /// Learns the scale and the range of some values. Their logarithm is taken
    /// if all are above 0 and the largest is at least 4 times the smallest.
    pub fn learn(name: &str, values: impl Iterator<Item = f64> + Clone) -> Input {
        let min = values.clone().fold(f64::INFINITY, f64::min);
        let max = values.clone().fold(f64::NEG_INFINITY, f64::max);
        let log = min > TINY && max >= WIDE * min;
        let scaled = values.map(|value| if log { value.ln() } else { value });
        let count = scaled.clone().count().max(1) as f64;
        let mean = scaled.clone().sum::<f64>() / count;
        let variance = scaled.map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        let deviation = if min < max { variance.sqrt() } else { 0.0 };
        Input {
            name: name.to_owned(),
            log,
            mean,
            deviation,
            min,
            max,
        }
    }

    /// An input that is used as it is, from `min` to `max`.
    pub fn as_is(name: &str, min: f64, max: f64) -> Input {
        Input {
            name: name.to_owned(),
            log: false,
            mean: 0.0,
            deviation: 1.0,
            min,
            max,
        }
    }

    /// `value` with the training's mean at 0 and its deviation as the unit. An
    /// input that was constant in the training says nothing: 0.
    pub fn standardise(&self, value: f64) -> f64 {
        if value.is_nan() {
            return value;
        }
        if self.deviation == 0.0 {
            return 0.0;
        }
        let scaled = if self.log {
            value.max(TINY).ln()
        } else {
            value
        };
        (scaled - self.mean) / self.deviation
    }

    /// `value`, or the edge of the training's range that it is beyond.
    pub fn limit(&self, value: f64) -> f64 {
        value.clamp(self.min, self.max)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let numbers = [self.mean, self.deviation, self.min, self.max];
        let finite = numbers.iter().all(|number| number.is_finite());
        if finite && self.deviation >= 0.0 && self.min <= self.max {
            return Ok(());
        }
        Err(format!("the scale of input {} is damaged", self.name))
    }
}

//! The trait of everything that predicts the seconds of a step.

use super::case::Case;
use super::descriptors::Descriptors;
use super::prior;
use schemars::JsonSchema;
use serde::Serialize;

/// Standard deviations on either side of 95 % of a normal distribution.
pub(super) const INTERVAL: f64 = 1.96;

/// Predicts how long a device of one machine takes for a case. Pure, and quick
/// enough to be asked a thousand times for a plan.
pub trait StepTime: Send + Sync {
    /// The machine's figures that it predicts for.
    fn descriptors(&self) -> &Descriptors;

    /// Seconds of a step of `case` by itself, above 0.
    fn seconds(&self, case: &Case) -> f64;

    /// Relative standard deviation of its predictions, as far as it is known.
    fn spread(&self) -> f64;

    /// The inputs of `case` that lie outside what it was trained on.
    fn outside(&self, _case: &Case) -> Vec<Outside> {
        Vec::new()
    }
}

/// An input outside the training range.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Outside {
    pub feature: String,
    pub value: f64,
    /// The least and the greatest value of the training.
    pub min: f64,
    pub max: f64,
}

impl Outside {
    /// The input, and what the training reached.
    pub fn in_words(&self) -> String {
        let number = |value: f64| match value.fract() == 0.0 && value.abs() < 1e15 {
            true => format!("{value}"),
            false => format!("{value:.3e}"),
        };
        let (value, min, max) = (number(self.value), number(self.min), number(self.max));
        format!("{} {value} (but {min} to {max})", self.feature)
    }
}

/// The [`prior`] as a predictor: it needs the machine file alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Physics(pub Descriptors);

impl StepTime for Physics {
    fn descriptors(&self) -> &Descriptors {
        &self.0
    }

    fn seconds(&self, case: &Case) -> f64 {
        prior::seconds(case, &self.0)
    }

    fn spread(&self) -> f64 {
        0.0
    }
}

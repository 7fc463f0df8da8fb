//! A trained model bound to a machine: the seconds of a step of any case,
//! before it runs.
//!
//! It uses the model that plans, whose inputs are known before a run. The model with
//! counters explains runs, and is not used here.

use pdawl_profiler::Fitted;
use pdawl_profiler::bundle::{Bundle, Range};
use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;

use super::case::{Case, DevicePart, StepWork};
use super::command;
use super::descriptors::Descriptors;
use super::features::{self, Facts};
use super::matrix::MatrixFigures;
use super::prior;

/// Features that follow from the length of a unit, as `known.unit_bytes` does.
const SAYS_UNIT_BYTES: [&str; 3] = [
    "known.unit_points_count",
    "known.unit_flops",
    "known.unit_traffic_bytes",
];

/// The errors of a predictor.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PredictorError {
    #[error(
        "model `{model}` has nothing for {codelet} on {kind}; it has {has}. \
         Profile and train that too: pdawl train --machine {machine}{}",
        command::options(.codelet)
    )]
    NoEntry {
        model: String,
        codelet: String,
        kind: &'static str,
        has: String,
        machine: String,
    },
    #[error(
        "model `{model}` wants `{feature}` for {codelet} on {kind}, which is not known here \
         before a run; complete the machine file, or train on this machine: pdawl train{}",
        command::options(.codelet)
    )]
    Unknown {
        model: String,
        codelet: String,
        kind: &'static str,
        feature: String,
    },
}

/// Predicts for one device of a machine.
#[derive(Clone, Debug)]
pub struct Predictor {
    descriptors: Descriptors,
    fitted: Fitted,
    /// The places of the model's inputs among the features.
    inputs: Vec<usize>,
    /// The training ranges of the inputs and of what was run.
    ranges: Vec<(usize, Range)>,
}

impl Predictor {
    /// The model of `codelet` in `bundle` for the host's cores or the device that
    /// `descriptors` describe.
    ///
    /// # Errors
    /// When the bundle has none, or when an input is not known of the machine.
    pub fn new(
        bundle: &Bundle,
        codelet: &str,
        descriptors: Descriptors,
    ) -> Result<Self, PredictorError> {
        let kind = kind(&descriptors);
        let entry = bundle.find(kind, codelet);
        let entry = entry.ok_or_else(|| PredictorError::NoEntry {
            model: bundle.name.clone(),
            codelet: codelet.to_owned(),
            kind,
            has: contents(bundle),
            machine: bundle.machine.clone(),
        })?;
        let known = features::values(&some_case(codelet, &descriptors), &descriptors);
        let inputs = (entry.fitted.inputs.iter())
            .map(|input| {
                features::index(&input.name)
                    .filter(|i| !known[*i].is_nan())
                    .ok_or_else(|| PredictorError::Unknown {
                        model: bundle.name.clone(),
                        codelet: codelet.to_owned(),
                        kind,
                        feature: input.name.clone(),
                    })
            })
            .collect::<Result<Vec<usize>, _>>()?;
        let ranges = (features::NAMES.iter().enumerate())
            .filter(|(i, name)| {
                let tells = name.starts_with("known.") && !SAYS_UNIT_BYTES.contains(name);
                tells || inputs.contains(i)
            })
            .filter_map(|(i, name)| Some((i, *entry.ranges.get(*name)?)))
            .collect();
        Ok(Self {
            descriptors,
            fitted: entry.fitted.clone(),
            inputs,
            ranges,
        })
    }

    /// Seconds of a step of `case` by itself. Allocates nothing.
    pub fn step_seconds(&self, case: &Case) -> f64 {
        let mut facts = Facts::of(case, &self.descriptors);
        let mut inputs = [0.0; features::NAMES.len()];
        for (input, feature) in inputs.iter_mut().zip(&self.inputs) {
            *input = facts.value(*feature);
        }
        self.fitted
            .predict(&inputs[..self.inputs.len()], facts.prior_seconds())
    }
}

impl StepTime for Predictor {
    fn descriptors(&self) -> &Descriptors {
        &self.descriptors
    }

    /// The prior where the model gives no number.
    fn seconds(&self, case: &Case) -> f64 {
        let seconds = self.step_seconds(case);
        match seconds.is_finite() && seconds > 0.0 {
            true => seconds,
            false => prior::seconds(case, &self.descriptors),
        }
    }

    fn spread(&self) -> f64 {
        self.fitted.spread
    }

    fn outside(&self, case: &Case) -> Vec<Outside> {
        let mut facts = Facts::of(case, &self.descriptors);
        let value = |(feature, range): &(usize, Range)| (*feature, *range, facts.value(*feature));
        (self.ranges.iter().map(value))
            .filter(|(_, range, value)| {
                let slack = 1e-9 * range.min.abs().max(range.max.abs());
                *value < range.min - slack || *value > range.max + slack
            })
            .map(|(feature, range, value)| Outside {
                feature: features::NAMES[feature].to_owned(),
                value,
                min: range.min,
                max: range.max,
            })
            .collect()
    }
}

/// The kind of device, as model files name it.
fn kind(descriptors: &Descriptors) -> &'static str {
    match descriptors.device {
        None => "cpu",
        Some(_) => "gpu",
    }
}

/// The entries of a model, for messages.
pub(super) fn contents(bundle: &Bundle) -> String {
    let entry = |e: &pdawl_profiler::bundle::CodeletModel| format!("{} on {}", e.codelet, e.kind);
    let all: Vec<String> = bundle.models.iter().map(entry).collect();
    match all.is_empty() {
        true => "nothing".to_owned(),
        false => all.join(", "),
    }
}

/// An example case of the device: it has the features that all cases have.
fn some_case(codelet: &str, descriptors: &Descriptors) -> Case {
    let part = match descriptors.device.and_then(|device| device.link) {
        None => DevicePart::whole_on_host(1, 8),
        Some(_) => DevicePart::Discrete {
            held: 4,
            slots: 19,
            streamed: 4,
            chunk: 1,
            queues: 3,
            solo: false,
        },
    };
    let work = StepWork {
        superstep: None,
        units: 8,
        unit_bytes: 64,
        unit_points: 8,
        element_bytes: 8,
        dimensions: 2,
        unit_flops: 40.0,
        unit_traffic: 128.0,
        matrix: codelet.starts_with("spmv").then_some(MatrixFigures {
            rows: 8,
            columns: 8,
            nonzeros: 64,
            mean: 8.0,
            variation: 0.0,
            most: 8,
            bandwidth: 7,
            irregular: 0.3,
            near_lines: 0.1,
            far_lines: 0.1,
            near_jumps: 0.1,
            far_jumps: 0.0,
        }),
    };
    Case { work, part }
}

#[cfg(test)]
mod tests;

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

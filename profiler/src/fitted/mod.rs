//! A fitted model: predicts seconds from named figures.

use ndarray::{Array2, Axis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::regress::{self, FitError, Range, Regressor, Spec, scratch};

/// Logarithms are kept within this, whatever a correction adds: e^±50 seconds
/// is out of every range of time, and finite.
const LARGEST: f64 = 50.0;

/// A model of the seconds of a step.
///
/// It predicts e^r, or `prior` · e^r when it is fitted over a prior: r is what
/// the regressor says of the standardised inputs.
#[derive(Clone, Debug, Deserialize, PartialEq, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Fitted {
    /// What it wants to know, in the order of [`Fitted::predict`]'s values:
    /// first the regressor's inputs, then those that only the correction uses.
    pub inputs: Vec<Input>,
    /// Whether it multiplies a prior: seconds that physics lets expect. It
    /// then learned ln(seconds / prior), else ln(seconds).
    pub over_prior: bool,
    pub regressor: Regressor,
    /// The range of the logarithms that it learned. Over a prior it answers
    /// with none beyond, unless it is a sum; else with none beyond by more than
    /// half of the width.
    pub learned: Range,
    /// What was fitted.
    pub spec: Spec,
    /// The deviation of ln(measured / predicted): about the relative error of a
    /// prediction within the training's range. That of the training's rows, until the
    /// validation replaces it.
    pub spread: f64,
    /// What calibration runs on another machine corrected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correction: Option<Correction>,
}

impl Fitted {
    /// Fits `spec` to runs: their `values` (a row a run, a column an input, in
    /// the order of `names`, as measured, finite) and `seconds`, above 0. With
    /// `priors`, above 0, it learns what multiplies them. For `weights` and
    /// `seed` see [`regress::fit`].
    ///
    /// # Errors
    ///
    /// [`FitError`].
    pub fn fit(
        spec: &Spec,
        names: &[String],
        values: &Array2<f64>,
        seconds: &[f64],
        priors: Option<&[f64]>,
        weights: &[f64],
        seed: u64,
    ) -> Result<Fitted, FitError> {
        // The logarithms that it learns.
        let target: Vec<f64> = match priors {
            None => seconds.iter().map(|seconds| seconds.ln()).collect(),
            Some(priors) => {
                let rows = seconds.iter().zip(priors);
                rows.map(|(seconds, prior)| (seconds / prior).ln())
                    .collect()
            }
        };
        let columns = values.axis_iter(Axis(1)).zip(names);
        let inputs: Vec<Input> = columns
            .map(|(column, name)| {
                let learned = Input::learn(name, column.iter().copied());
                match spec {
                    Spec::Sum { .. } => Input::as_is(name, learned.min, learned.max),
                    _ => learned,
                }
            })
            .collect();
        let x = Fitted::standardise(&inputs, values);
        let regressor = regress::fit(spec, &x, &target, weights, seed)?;
        let believed = target.iter().zip(weights);
        let believed = believed.filter(|(_, weight)| **weight > 0.5);
        let rows = x.axis_iter(Axis(0)).zip(&target);
        let residuals: Vec<f64> = rows
            .map(|(row, target)| target - regressor.predict(&row.to_vec()))
            .collect();
        Ok(Fitted {
            inputs,
            over_prior: priors.is_some(),
            regressor,
            learned: match spec {
                Spec::Nothing => Range {
                    low: 0.0,
                    high: 0.0,
                },
                _ => Range::of(believed.map(|(target, _)| target)),
            },
            spec: spec.clone(),
            spread: regress::spread(&residuals),
            correction: None,
        })
    }

    /// A column of `values` an input, as the regressor wants them: mean 0,
    /// deviation 1.
    pub fn standardise(inputs: &[Input], values: &Array2<f64>) -> Array2<f64> {
        let mut x = values.clone();
        for (mut column, input) in x.axis_iter_mut(Axis(1)).zip(inputs) {
            column.mapv_inplace(|value| input.standardise(value));
        }
        x
    }

    /// The seconds of a step, from `values` in the order of [`Fitted::inputs`]
    /// and the seconds that physics lets expect (unused unless
    /// [`Fitted::over_prior`]).
    ///
    /// Over a prior, inputs outside of the training count as its edge: physics
    /// extrapolates, what was learned does not. Only a linear regression
    /// continues its lines, a little: it may hold large terms against each
    /// other, which must move together. So do the parts of a sum, which are
    /// physics themselves. Without a prior, every family continues
    /// in its own way.
    ///
    /// Not a number if a value is not one, or if there are not as many as
    /// inputs.
    pub fn predict(&self, values: &[f64], prior: f64) -> f64 {
        if values.len() != self.inputs.len() {
            return f64::NAN;
        }
        let goes_on = matches!(self.regressor, Regressor::Linear(_) | Regressor::Sum(_));
        let hold = self.over_prior && !goes_on;
        let learned = scratch(self.regressor.inputs(), |x| {
            for ((x, input), &value) in x.iter_mut().zip(&self.inputs).zip(values) {
                let value = if hold { input.limit(value) } else { value };
                *x = input.standardise(value);
            }
            self.regressor.predict(x)
        });
        let learned = if self.over_prior && !matches!(self.regressor, Regressor::Sum(_)) {
            learned.clamp(self.learned.low, self.learned.high)
        } else {
            self.learned.limit(learned)
        };
        let corrected = match &self.correction {
            Some(correction) => learned + correction.of(&self.inputs, values),
            None => learned,
        };
        let factor = corrected.clamp(-LARGEST, LARGEST).exp();
        if self.over_prior {
            prior * factor
        } else {
            factor
        }
    }

    /// The same model, corrected: by `correction` alone, whatever corrected it
    /// before. `own` are the inputs that the correction uses and the regressor
    /// does not; they come after the others.
    ///
    /// # Errors
    ///
    /// Says what is wrong when the correction names an input that there is not,
    /// when it does not use one of its own, or when it is not finite.
    pub fn with_correction(
        self,
        correction: Correction,
        own: Vec<Input>,
    ) -> Result<Fitted, String> {
        let mut fitted = self.without_correction();
        fitted.inputs.extend(own);
        fitted.correction = Some(correction);
        fitted.check()?;
        Ok(fitted)
    }

    /// The same model as it was before any correction.
    pub fn without_correction(mut self) -> Fitted {
        self.inputs.truncate(self.regressor.inputs());
        self.correction = None;
        self
    }

    /// Whether its parts fit together, which those of a file may not; the error says what
    /// does not.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (wants, has) = (self.regressor.inputs(), self.inputs.len());
        let used = |input: &&Input| {
            let correction = self.correction.as_ref();
            correction.is_some_and(|c| c.inputs.contains(&input.name))
        };
        if wants > has || !self.inputs[wants..].iter().all(|input| used(&input)) {
            return Err(format!(
                "the regressor wants {wants} inputs, the model has {has}"
            ));
        }
        if self.inputs.is_empty() && !self.over_prior {
            return Err("the model has neither inputs nor a prior".into());
        }
        for input in &self.inputs {
            input.check()?;
        }
        if !self.learned.is_valid() {
            return Err("the range that the model learned is damaged".into());
        }
        if !self.spread.is_finite() || self.spread < 0.0 {
            return Err("the spread must be a number of at least 0".into());
        }
        if let Some(correction) = &self.correction {
            correction.check(&self.inputs)?;
        }
        self.regressor.check()
    }
}

/// Added to the logarithm of what the model predicts: `intercept` + the sum of
/// coefficient times standardised input.
///
/// Inputs beyond their range (the training's, or for the correction's own
/// inputs the one that they can have) count as its edge, so that a correction
/// from few runs never runs away.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Correction {
    /// The names of the model's inputs that it uses; may be none.
    pub inputs: Vec<String>,
    /// Their coefficients, in the same order.
    pub coefficients: Vec<f64>,
    /// The logarithm of the factor at the mean of the training.
    pub intercept: f64,
}

impl Correction {
    /// What to add to the logarithm at `values`, one an input of the model, in
    /// their own units.
    pub fn of(&self, inputs: &[Input], values: &[f64]) -> f64 {
        let terms = self.inputs.iter().zip(&self.coefficients);
        let sum: f64 = terms
            .filter_map(|(name, coefficient)| {
                let index = inputs.iter().position(|input| input.name == *name)?;
                let input = &inputs[index];
                Some(coefficient * input.standardise(input.limit(values[index])))
            })
            .sum();
        self.intercept + sum
    }

    /// Whether it can correct a model of `inputs`; the error says what is
    /// wrong.
    pub fn check(&self, inputs: &[Input]) -> Result<(), String> {
        if self.inputs.len() != self.coefficients.len() {
            let (names, numbers) = (self.inputs.len(), self.coefficients.len());
            return Err(format!(
                "the correction has {names} inputs and {numbers} coefficients"
            ));
        }
        let known = |name: &&String| !inputs.iter().any(|input| input.name == **name);
        if let Some(name) = self.inputs.iter().find(known) {
            return Err(format!(
                "the correction uses {name}, which is no input of the model"
            ));
        }
        let mut numbers = self.coefficients.iter().chain([&self.intercept]);
        if numbers.all(|number| number.is_finite()) {
            return Ok(());
        }
        Err("a number of the correction is not finite".into())
    }
}

#[cfg(test)]
mod tests;

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

    fn check(&self) -> Result<(), String> {
        let numbers = [self.mean, self.deviation, self.min, self.max];
        let finite = numbers.iter().all(|number| number.is_finite());
        if finite && self.deviation >= 0.0 && self.min <= self.max {
            return Ok(());
        }
        Err(format!("the scale of input {} is damaged", self.name))
    }
}

//! The correction of a model by a few runs on another machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Input;

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

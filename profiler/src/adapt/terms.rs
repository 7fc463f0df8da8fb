//! The terms that a correction can depend on.

use super::Expectation;
use crate::Fitted;
use crate::fitted::Input;

/// The figures that a correction of a model depends on, as it sees them.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// The model's own input where it has one of the name.
    inputs: Vec<Input>,
    /// Those that the model has not.
    own: Vec<Input>,
}

impl Terms {
    /// Terms for a model, by their names: ratios from 0 to 1, such as the part
    /// of the time that transfers take.
    pub fn of(fitted: &Fitted, names: &[&str]) -> Self {
        let known = &fitted.inputs[..fitted.regressor.inputs().min(fitted.inputs.len())];
        let mut terms = Self {
            inputs: Vec::new(),
            own: Vec::new(),
        };
        for name in names {
            match known.iter().find(|input| input.name == *name) {
                Some(input) => terms.inputs.push(input.clone()),
                None => {
                    let input = Input::as_is(name, 0.0, 1.0);
                    terms.inputs.push(input.clone());
                    terms.own.push(input);
                }
            }
        }
        terms
    }

    /// The terms of figures that are in the order of the names.
    pub fn values(&self, figures: &[f64]) -> Vec<f64> {
        (self.inputs.iter().zip(figures))
            .map(|(input, figure)| input.standardise(input.limit(*figure)))
            .collect()
    }

    /// How far the constant, and each term's coefficient, is expected to lie
    /// from 0: an input that the model scales has a coefficient of its scale.
    pub fn deviations(&self, expected: Expectation) -> Vec<f64> {
        let each = self
            .inputs
            .iter()
            .map(|input| expected.term * input.deviation);
        std::iter::once(expected.constant).chain(each).collect()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.inputs.iter().map(|input| input.name.clone()).collect()
    }

    pub(super) fn own(&self) -> Vec<Input> {
        self.own.clone()
    }
}

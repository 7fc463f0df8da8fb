//! What a foreign model's predictions are multiplied by.

use serde::{Deserialize, Serialize};

/// A factor on predicted seconds, `exp(constant + sum coefficient * value)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Correction {
    pub constant: f64,
    pub terms: Vec<Term>,
    /// Relative standard deviation of corrected predictions, as runs that were
    /// left out tell it.
    pub spread: f64,
    /// Runs that it was fitted to.
    pub runs: usize,
}

/// A feature that the factor depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// The feature's name.
    pub name: String,
    pub coefficient: f64,
}

impl Correction {
    /// The factor where the terms' features have these values, one a term.
    pub fn factor(&self, values: &[f64]) -> f64 {
        let terms = self.terms.iter().zip(values);
        let sum: f64 = terms.map(|(term, value)| term.coefficient * value).sum();
        (self.constant + sum).exp()
    }
}

//! The validation of a model and of the candidates that were not chosen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Family;
use crate::regress::Spec;
use crate::validate::{Accuracy, Beyond};

/// How models were compared. Errors are fractions: 0.02 is 2 %.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validation {
    /// Runs.
    pub rows: usize,
    /// Configurations: their repeats were never on both sides.
    pub groups: usize,
    /// 10, or one a configuration where there are fewer.
    pub folds: usize,
    pub seed: u64,
    /// What was held out where measurements end; `None` if nothing could be.
    pub beyond: Option<Beyond>,
    /// Every family that could be fitted, in the order of preference.
    pub candidates: Vec<Candidate>,
    /// Every family that could not, and why.
    pub failed: Vec<Failed>,
    /// Ways to predict that learn nothing, on the same rows.
    pub baselines: Vec<Baseline>,
    /// Which of the candidates was chosen.
    pub chosen: usize,
    /// Why, in a sentence.
    pub why: String,
    /// The least |correlation| with its target among the features from which
    /// the chosen one's inputs were taken.
    pub threshold: f64,
    /// Rows that the chosen model hardly believes, since the others contradict
    /// them.
    pub outliers: usize,
}

/// A model whose cross-validated error is larger plans hardly better than a guess.
const POOR: f64 = 0.25;

impl Validation {
    /// The cross-validated error of the chosen model, if it is so large that its plans
    /// are hardly better than guesses.
    pub fn poor(&self) -> Option<f64> {
        let error = self.chosen()?.accuracy.mape;
        (error.is_nan() || error > POOR).then_some(error)
    }

    /// The candidate that was chosen. `None` in a damaged file only.
    pub fn chosen(&self) -> Option<&Candidate> {
        self.candidates.get(self.chosen)
    }
}

/// A family of models. Its errors are those of models that were fitted, with
/// hyper-parameters and number of clusters of their own, without the rows on
/// which they were tested.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    pub family: Family,
    /// The hyper-parameters that all rows lead to.
    pub spec: Spec,
    /// The number of clusters that all rows lead to.
    pub clusters: usize,
    /// The features that all rows lead to.
    pub inputs: Vec<String>,
    /// Cross-validated, all folds together.
    pub accuracy: Accuracy,
    /// The mean absolute percentage error of the rows that are believed,
    /// cross-validated: a row that the others contradict says nothing about a
    /// model.
    pub believed: f64,
    /// The standard error of the folds' mean absolute percentage error.
    pub standard_error: f64,
    /// Cross-validated, fold by fold.
    pub folds: Vec<Accuracy>,
    /// Where measurements end, fitted without these rows.
    pub beyond: Option<Accuracy>,
    /// What decided, and its standard error: the geometric mean of `believed` and of the same
    /// error beyond the limit. The first family within one standard error of the least is
    /// chosen.
    pub score: f64,
    pub score_error: f64,
}

/// A family that could not be fitted.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    pub family: Family,
    pub reason: String,
}

/// The reason of a family for which a recipe's deadline left no time.
pub(super) const LATE: &str = "no time was left to fit it";

impl Failed {
    /// Whether it was left out for want of time.
    pub fn is_late(&self) -> bool {
        self.reason == LATE
    }
}

/// A way to predict that learns nothing.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// `naive`: equations 1 and 2 of the PDAWL paper; `roofline`: bytes over bandwidth; `prior`:
    /// the physical model.
    pub name: String,
    /// On all rows.
    pub accuracy: Accuracy,
    /// On the rows that were held out where measurements end.
    pub beyond: Option<Accuracy>,
}

/// A row, predicted by a model that has not seen its configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldOut {
    /// Its place in the table.
    pub row: usize,
    /// Seconds of a step.
    pub measured: f64,
    /// Seconds of a step.
    pub predicted: f64,
}

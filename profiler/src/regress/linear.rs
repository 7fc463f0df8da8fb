//! Linear regression on the paper's basis functions, with L2.

use ndarray::{Array2, Axis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::basis::{FUNCTIONS, functions};
use super::{FitError, Range, ridge};

/// ln(F) = intercept + the sum of w φ(x) over every feature x and every φ of
/// x, x², x³, x⁴, eˣ, ln x and x ln x (section 3.2, step 5 of the paper).
///
/// Each x is the feature mapped from its range in the training to [0.1, 2].
/// Outside of the range every φ continues as a straight line, up to half a
/// width of the range; further out the prediction stays as it is there.
#[derive(Clone, Debug, Deserialize, PartialEq, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Linear {
    intercept: f64,
    features: Vec<Feature>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
struct Feature {
    range: Range,
    /// The weights of the basis functions, in their order.
    weights: [f64; FUNCTIONS],
}

impl Linear {
    /// 0 everywhere.
    pub(super) fn zero() -> Self {
        Self {
            intercept: 0.0,
            features: Vec::new(),
        }
    }

    pub(super) fn inputs(&self) -> usize {
        self.features.len()
    }

    pub(super) fn predict(&self, x: &[f64]) -> f64 {
        let terms = self.features.iter().zip(x);
        self.intercept + terms.map(|(feature, &x)| feature.at(x)).sum::<f64>()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let fine = |feature: &Feature| {
            feature.range.is_valid() && feature.weights.iter().all(|weight| weight.is_finite())
        };
        match self.features.iter().position(|feature| !fine(feature)) {
            Some(index) => Err(format!("feature {index} of the linear model is damaged")),
            None if !self.intercept.is_finite() => Err("the linear model has no intercept".into()),
            None => Ok(()),
        }
    }
}

impl Feature {
    fn at(&self, x: f64) -> f64 {
        let functions = functions(&self.range, x);
        functions
            .iter()
            .zip(&self.weights)
            .map(|(f, w)| f * w)
            .sum()
    }
}

/// Fits to rows with weights.
pub(super) fn fit(
    x: &Array2<f64>,
    y: &[f64],
    weights: &[f64],
    l2: f64,
) -> Result<Linear, FitError> {
    let ranges = ranges(x);
    let solution = ridge::solve(&expand(x, &ranges), y, weights, l2)?;
    let (coefficients, _) = solution.coefficients.as_chunks::<FUNCTIONS>();
    let features = ranges.into_iter().zip(coefficients);
    Ok(Linear {
        intercept: solution.intercept,
        features: features
            .map(|(range, weights)| Feature {
                range,
                weights: *weights,
            })
            .collect(),
    })
}

/// The range of every column.
pub(super) fn ranges(x: &Array2<f64>) -> Vec<Range> {
    x.axis_iter(Axis(1))
        .map(|column| Range::of(column.iter()))
        .collect()
}

/// The basis functions of every row, a feature's side by side.
pub(super) fn expand(x: &Array2<f64>, ranges: &[Range]) -> Array2<f64> {
    let mut columns = Array2::zeros((x.nrows(), FUNCTIONS * ranges.len()));
    for ((row, column), &value) in x.indexed_iter() {
        let functions = functions(&ranges[column], value);
        for (offset, function) in functions.into_iter().enumerate() {
            columns[[row, FUNCTIONS * column + offset]] = function;
        }
    }
    columns
}

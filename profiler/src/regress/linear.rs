//! The paper's linear regression (section 3.2, step 5), and its basis functions.
//!
//! ln(F) = sum of w φ(x), where φ is one of x, x², x³, x⁴, eˣ, ln x, x ln x.
//! They need an x above 0 and not large: a standardised feature is mapped
//! linearly from its range in the training to [[`LOW`], [`HIGH`]].

use ndarray::{Array2, Axis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FitError, Range, Regression, ridge};

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
}

impl Regression for Linear {
    fn inputs(&self) -> usize {
        self.features.len()
    }

    fn predict(&self, x: &[f64]) -> f64 {
        let terms = self.features.iter().zip(x);
        self.intercept + terms.map(|(feature, &x)| feature.at(x)).sum::<f64>()
    }

    fn check(&self) -> Result<(), String> {
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

/// How many functions there are.
pub(super) const FUNCTIONS: usize = 7;

/// Where the smallest value of the training is mapped to.
const LOW: f64 = 0.1;

/// Where the largest value of the training is mapped to.
const HIGH: f64 = 2.0;

/// The part of the range, at its edge, whose slope is continued outside.
const EDGE: f64 = 0.1;

/// Where `value` of a feature is mapped to: [`LOW`] to [`HIGH`] within the
/// `range` of the training, and on in the same way up to [`Range::limit`]. A
/// range without width is all `LOW`.
fn map(range: &Range, value: f64) -> f64 {
    let width = range.high - range.low;
    if width <= 0.0 {
        return LOW;
    }
    LOW + (HIGH - LOW) * (range.limit(value) - range.low) / width
}

/// The functions at `value` of a feature whose training had `range`.
///
/// eˣ and x⁴ explode and ln x has an end, so outside of the range each
/// function is continued as a straight line, with its mean slope over the last
/// tenth of the range.
fn functions(range: &Range, value: f64) -> [f64; FUNCTIONS] {
    let x = map(range, value);
    let step = EDGE * (HIGH - LOW);
    if x > HIGH {
        line(HIGH, HIGH - step, x)
    } else if x < LOW {
        line(LOW, LOW + step, x)
    } else {
        at(x)
    }
}

fn at(x: f64) -> [f64; FUNCTIONS] {
    let (square, log) = (x * x, x.ln());
    [
        x,
        square,
        square * x,
        square * square,
        x.exp(),
        log,
        x * log,
    ]
}

/// The straight lines through `edge` and `inside`, at `x`.
fn line(edge: f64, inside: f64, x: f64) -> [f64; FUNCTIONS] {
    let (at_edge, at_inside) = (at(edge), at(inside));
    let beyond = (x - edge) / (edge - inside);
    std::array::from_fn(|i| at_edge[i] + beyond * (at_edge[i] - at_inside[i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: Range = Range {
        low: -1.5,
        high: 2.5,
    };

    #[test]
    fn the_paper_s_functions_of_the_mapped_value() {
        // The middle of the range is mapped to 1.05.
        let x: f64 = 1.05;
        let expected = [
            x,
            x.powi(2),
            x.powi(3),
            x.powi(4),
            x.exp(),
            x.ln(),
            x * x.ln(),
        ];
        for (found, expected) in functions(&RANGE, 0.5).into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12);
        }
        assert!((functions(&RANGE, RANGE.low)[0] - LOW).abs() < 1e-12);
        assert!((functions(&RANGE, RANGE.high)[0] - HIGH).abs() < 1e-12);
    }

    #[test]
    fn outside_they_go_on_in_lines_and_then_stay() {
        for (edge, outwards) in [(RANGE.high, 1.0), (RANGE.low, -1.0)] {
            let at = |beyond: f64| functions(&RANGE, edge + outwards * beyond);
            for i in 0..FUNCTIONS {
                let [inside, outside] = [at(-1e-9)[i], at(1e-9)[i]];
                assert!((inside - outside).abs() < 1e-6, "function {i} jumps");
                let [one, two, three] = [at(0.5)[i], at(1.0)[i], at(1.5)[i]];
                assert!((three - 2.0 * two + one).abs() < 1e-9, "function {i} bends");
                assert_eq!(at(2.0)[i], at(1e9)[i], "function {i} runs away");
                assert!(at(1e300)[i].is_finite());
            }
        }
    }

    #[test]
    fn a_constant_feature_is_one_point() {
        let constant = Range {
            low: 3.0,
            high: 3.0,
        };
        assert_eq!(functions(&constant, 3.0), functions(&constant, 8.0));
    }
}

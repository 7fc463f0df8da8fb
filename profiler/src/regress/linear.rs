//! The paper's linear regression (section 3.2, step 5), and its basis functions.
//!
//! ln(F) = sum of w φ(x), where φ is one of x, x², x³, x⁴, eˣ, ln x, x ln x.
//! They need an x above 0 and not large: a standardised feature is mapped
//! linearly from its range in the training to [[`LOW`], [`HIGH`]].

use linfa::Dataset;
use linfa::traits::Fit;
use linfa_linear::LinearRegression;
use ndarray::{Array1, Array2, ArrayView1, Axis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FitError, Range, Regression};

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
    let solution = solve(&expand(x, &ranges), y, weights, l2)?;
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

/// What multiplies the columns, and what is added.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    pub intercept: f64,
    pub coefficients: Vec<f64>,
}

impl Solution {
    pub fn at(&self, row: ArrayView1<f64>) -> f64 {
        let terms = row.iter().zip(&self.coefficients);
        self.intercept + terms.map(|(x, w)| x * w).sum::<f64>()
    }
}

/// Minimises the sum of weight (y - intercept - x · w)² / W + l2 |s w|², where
/// W is the sum of the weights and s are the columns' deviations: columns
/// count alike, whatever their units. A constant column gets 0.
///
/// Least squares on the rows extended by sqrt(W l2) times the identity is
/// exactly this, and linfa-linear solves it by QR, which bears the nearly
/// parallel columns of the basis better than normal equations would.
pub fn solve(
    columns: &Array2<f64>,
    y: &[f64],
    weights: &[f64],
    l2: f64,
) -> Result<Solution, FitError> {
    let weights = ArrayView1::from(weights);
    let total = weights.sum();
    let y = ArrayView1::from(y);
    let middle = weights.dot(&y) / total;
    let scales: Vec<Scale> = columns
        .axis_iter(Axis(1))
        .map(|column| Scale::of(column, weights, total))
        .collect();
    let kept: Vec<usize> = (0..scales.len())
        .filter(|&column| scales[column].deviation > 0.0)
        .collect();

    let rows = columns.nrows();
    let mut extended = Array2::zeros((rows + kept.len(), kept.len()));
    let mut target = Array1::zeros(rows + kept.len());
    let roots = weights.mapv(f64::sqrt);
    for row in 0..rows {
        target[row] = roots[row] * (y[row] - middle);
        for (place, &column) in kept.iter().enumerate() {
            let standard = scales[column].apply(columns[[row, column]]);
            extended[[row, place]] = roots[row] * standard;
        }
    }
    for place in 0..kept.len() {
        extended[[rows + place, place]] = (total * l2).sqrt();
    }

    let mut coefficients = vec![0.0; scales.len()];
    if !kept.is_empty() {
        for (&column, weight) in kept.iter().zip(&least_squares(extended, target)?) {
            coefficients[column] = weight / scales[column].deviation;
        }
    }
    let means = scales.iter().zip(&coefficients);
    Ok(Solution {
        intercept: middle - means.map(|(scale, w)| scale.mean * w).sum::<f64>(),
        coefficients,
    })
}

/// The solution of least squares, by QR.
pub fn least_squares(rows: Array2<f64>, target: Array1<f64>) -> Result<Array1<f64>, FitError> {
    let solved = LinearRegression::new()
        .with_intercept(false)
        .fit(&Dataset::new(rows, target));
    let solved = solved.map_err(|error| FitError::Solver {
        family: "linear",
        reason: error.to_string(),
    })?;
    Ok(solved.params().clone())
}

/// A column's weighted mean and deviation.
struct Scale {
    mean: f64,
    deviation: f64,
}

impl Scale {
    fn of(column: ArrayView1<f64>, weights: ArrayView1<f64>, total: f64) -> Scale {
        let mean = weights.dot(&column) / total;
        let squares = column.mapv(|value| (value - mean).powi(2));
        let deviation = (weights.dot(&squares) / total).sqrt();
        // What rounding leaves of a constant is no variation.
        let constant = deviation <= 1e-12 * mean.abs();
        Scale {
            mean,
            deviation: if constant { 0.0 } else { deviation },
        }
    }

    fn apply(&self, value: f64) -> f64 {
        (value - self.mean) / self.deviation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regress::fixtures::Random;

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

    fn rows() -> (Array2<f64>, Vec<f64>, Vec<f64>) {
        let mut random = Random(11);
        let columns = Array2::from_shape_simple_fn((30, 2), || random.normal());
        let y = columns
            .rows()
            .into_iter()
            .map(|row| 2.0 + row[0] - 3.0 * row[1] + random.normal())
            .collect();
        let weights = (0..30).map(|_| random.even()).collect();
        (columns, y, weights)
    }

    /// The normal equations of two columns, by Cramer's rule.
    fn closed_form(columns: &Array2<f64>, y: &[f64], weights: &[f64], l2: f64) -> Solution {
        let total: f64 = weights.iter().sum();
        let mean = |value: &dyn Fn(usize) -> f64| {
            (0..y.len())
                .map(|row| weights[row] * value(row))
                .sum::<f64>()
                / total
        };
        let (m0, m1) = (mean(&|r| columns[[r, 0]]), mean(&|r| columns[[r, 1]]));
        let my = mean(&|r| y[r]);
        let a = |r: usize| columns[[r, 0]] - m0;
        let b = |r: usize| columns[[r, 1]] - m1;
        let (aa, bb) = (mean(&|r| a(r) * a(r)), mean(&|r| b(r) * b(r)));
        let ab = mean(&|r| a(r) * b(r));
        let (ay, by) = (mean(&|r| a(r) * (y[r] - my)), mean(&|r| b(r) * (y[r] - my)));
        // l2 weighs the coefficients of standardised columns.
        let (paa, pbb) = (aa * (1.0 + l2), bb * (1.0 + l2));
        let determinant = paa * pbb - ab * ab;
        let w0 = (ay * pbb - by * ab) / determinant;
        let w1 = (by * paa - ay * ab) / determinant;
        Solution {
            intercept: my - w0 * m0 - w1 * m1,
            coefficients: vec![w0, w1],
        }
    }

    fn assert_close(a: &Solution, b: &Solution) {
        assert!((a.intercept - b.intercept).abs() < 1e-10);
        for (a, b) in a.coefficients.iter().zip(&b.coefficients) {
            assert!((a - b).abs() < 1e-10, "{a} {b}");
        }
    }

    #[test]
    fn equals_the_closed_form() {
        let (columns, y, weights) = rows();
        for l2 in [1e-9, 0.01, 0.5, 10.0] {
            let solved = solve(&columns, &y, &weights, l2).unwrap();
            assert_close(&solved, &closed_form(&columns, &y, &weights, l2));
        }
    }

    #[test]
    fn the_intercept_is_not_penalised() {
        let (columns, y, weights) = rows();
        let far: Vec<f64> = y.iter().map(|y| y + 1000.0).collect();
        let near = solve(&columns, &y, &weights, 5.0).unwrap();
        let far = solve(&columns, &far, &weights, 5.0).unwrap();
        assert!((far.intercept - near.intercept - 1000.0).abs() < 1e-8);
        let flat = solve(&columns, &y, &[1.0; 30], 1e12).unwrap();
        assert!((flat.intercept - y.iter().sum::<f64>() / 30.0).abs() < 1e-8);
    }

    #[test]
    fn units_do_not_matter_and_constants_get_nothing() {
        let (mut columns, y, weights) = rows();
        let before = solve(&columns, &y, &weights, 0.1).unwrap();
        columns.column_mut(0).mapv_inplace(|value| 1e6 * value);
        columns.push_column(ArrayView1::from(&[7.3; 30])).unwrap();
        let after = solve(&columns, &y, &weights, 0.1).unwrap();
        assert!((before.coefficients[0] - 1e6 * after.coefficients[0]).abs() < 1e-9);
        assert!((before.coefficients[1] - after.coefficients[1]).abs() < 1e-9);
        assert_eq!(after.coefficients[2], 0.0);
    }

    #[test]
    fn a_row_of_weight_zero_is_not_there() {
        let (columns, mut y, mut weights) = rows();
        weights[4] = 0.0;
        let before = solve(&columns, &y, &weights, 0.1).unwrap();
        y[4] = 1e6;
        assert_close(&before, &solve(&columns, &y, &weights, 0.1).unwrap());
    }
}

//! Weighted least squares with L2, the intercept free of it.

use linfa::Dataset;
use linfa::traits::Fit;
use linfa_linear::LinearRegression;
use ndarray::{Array1, Array2, ArrayView1, Axis};

use super::FitError;

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
        let solved = LinearRegression::new()
            .with_intercept(false)
            .fit(&Dataset::new(extended, target))
            .map_err(|error| FitError::Solver {
                family: "linear",
                reason: error.to_string(),
            })?;
        for (&column, weight) in kept.iter().zip(solved.params()) {
            coefficients[column] = weight / scales[column].deviation;
        }
    }
    let means = scales.iter().zip(&coefficients);
    Ok(Solution {
        intercept: middle - means.map(|(scale, w)| scale.mean * w).sum::<f64>(),
        coefficients,
    })
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

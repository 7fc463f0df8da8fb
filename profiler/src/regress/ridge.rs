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
    use super::super::fixtures::Random;
    use super::*;

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

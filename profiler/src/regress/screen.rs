//! The weights of rows: disturbed measurements count less.

use ndarray::{Array2, ArrayView1, Axis};

use super::FitError;
use super::linear::{self, FUNCTIONS, expand, ranges};
use crate::median;

/// The deviation of logarithms that rows are never held to: a run 5 % off its
/// expectation is nothing unusual, however well the others agree.
const USUAL: f64 = 0.05;

/// L2 of the regression that residuals are taken from.
const L2: f64 = 1e-4;

/// Huber's bend, in deviations: 95 % efficient on normal values.
const BEND: f64 = 1.345;

/// Rounds of Huber's weights, which find their way past many outliers, and
/// then of Tukey's, which forget them wholly.
const HUBER_ROUNDS: usize = 2;
const TUKEY_ROUNDS: usize = 2;

/// Of the basis functions, x, x² and ln x: they follow a curve as well as all
/// seven, in a fifth of the time.
const FOLLOWED: [usize; 3] = [0, 1, 5];

/// The number of nearest neighbours ...
const NEIGHBOURS: usize = 6;

/// ... and how many of them must agree with a row to confirm it.
const VOUCHERS: usize = 2;

/// How far to believe each row: a weight from 0 (another program ran beside
/// it, say) to 1.
///
/// `x` has a standardised feature a column, `y` is a logarithm of time. Two
/// witnesses are heard, and a row is weighed by the kinder one:
///
/// - its residual in a linear regression on x, x² and ln x of every feature,
///   which is repeated with the weights that follow from its own residuals
///   (Huber's, then Tukey's bisquare at 4.685 deviations; the deviation from
///   the median absolute residual, at least 5 %);
/// - how far its residual is from those of its neighbours: where the linear
///   form is wrong, as in a small region with rules of its own, rows are wrong
///   together. Two of the six nearest rows must agree.
///
/// Fewer than 8 rows are all believed.
///
/// # Errors
///
/// When the regression cannot be solved.
pub fn screen(x: &Array2<f64>, y: &[f64]) -> Result<Vec<f64>, FitError> {
    let rows = x.nrows();
    if rows < NEIGHBOURS + 2 {
        return Ok(vec![1.0; rows]);
    }
    let residuals = robust_residuals(x, y)?;
    let cut = CUT * spread(&residuals).max(USUAL);
    let weights = residuals.iter().enumerate().map(|(row, &residual)| {
        let alone = bisquare(residual, cut);
        // Most rows need no one to vouch for them.
        if alone > 0.9 {
            return alone;
        }
        alone.max(bisquare(disagreement(x, &residuals, row), cut))
    });
    Ok(weights.collect())
}

/// What a linear regression that outliers do not move leaves unexplained.
fn robust_residuals(x: &Array2<f64>, y: &[f64]) -> Result<Vec<f64>, FitError> {
    let all = expand(x, &ranges(x));
    let followed: Vec<usize> = (0..all.ncols())
        .filter(|column| FOLLOWED.contains(&(column % FUNCTIONS)))
        .collect();
    let columns = all.select(Axis(1), &followed);
    let mut weights = vec![1.0; y.len()];
    for round in 0..HUBER_ROUNDS + TUKEY_ROUNDS {
        let residuals = residuals(&columns, y, &weights)?;
        let scale = spread(&residuals).max(USUAL);
        for (weight, residual) in weights.iter_mut().zip(residuals) {
            *weight = if round < HUBER_ROUNDS {
                huber(residual, BEND * scale)
            } else {
                bisquare(residual, CUT * scale)
            };
        }
    }
    residuals(&columns, y, &weights)
}

fn residuals(columns: &Array2<f64>, y: &[f64], weights: &[f64]) -> Result<Vec<f64>, FitError> {
    let solution = linear::solve(columns, y, weights, L2)?;
    let rows = columns.axis_iter(Axis(0)).zip(y);
    Ok(rows.map(|(row, y)| y - solution.at(row)).collect())
}

/// How far a row's residual is from those of its neighbours: from the one that
/// agrees second best of the nearest six.
fn disagreement(x: &Array2<f64>, residuals: &[f64], row: usize) -> f64 {
    let mut others: Vec<(f64, usize)> = (0..residuals.len())
        .filter(|&other| other != row)
        .map(|other| (distance(x.row(row), x.row(other)), other))
        .collect();
    others.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let nearest = others.iter().take(NEIGHBOURS);
    let mut differences: Vec<f64> = nearest
        .map(|&(_, other)| (residuals[row] - residuals[other]).abs())
        .collect();
    differences.sort_by(f64::total_cmp);
    differences[VOUCHERS - 1]
}

fn distance(a: ArrayView1<f64>, b: ArrayView1<f64>) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// The median absolute deviation of normal values is this part of their
/// deviation.
const NORMAL: f64 = 0.674_489_750_196_082;

/// Tukey's bisquare gives up values beyond this many deviations; 4.685 keeps
/// 95 % of the efficiency of least squares on normal values.
const CUT: f64 = 4.685;

/// The deviation of values around 0 (residuals), from the median of their distances
/// from it: up to half of them may be outliers.
pub fn spread(values: &[f64]) -> f64 {
    median(values.iter().map(|value| value.abs())).unwrap_or(0.0) / NORMAL
}

/// Huber's weight of a residual: 1 up to `bend`, then falling as 1 / residual.
/// Least squares repeated with it always arrives, from wherever it starts.
fn huber(residual: f64, bend: f64) -> f64 {
    if residual.abs() <= bend {
        1.0
    } else {
        bend / residual.abs()
    }
}

/// Tukey's bisquare weight of a residual: near 1 around 0, and 0 from `cut` on.
fn bisquare(residual: f64, cut: f64) -> f64 {
    if residual.abs() >= cut {
        return 0.0;
    }
    (1.0 - (residual / cut).powi(2)).powi(2)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{Random, profile, slowed};
    use super::*;

    #[test]
    fn slowed_rows_are_found_and_others_believed() {
        let (x, clean) = profile(300, 1);
        let (dirty, slow) = slowed(&clean, 0.05, 5.0, 2);
        let weights = screen(&x, &dirty).unwrap();
        assert!(slow.len() > 8);
        for (row, weight) in weights.iter().enumerate() {
            if slow.contains(&row) {
                assert!(*weight < 0.01, "slowed row {row} has weight {weight}");
            }
        }
        let believed = weights.iter().filter(|weight| **weight > 0.5).count();
        assert!(believed as f64 >= 0.98 * (300 - slow.len()) as f64);
    }

    #[test]
    fn a_region_with_rules_of_its_own_is_believed() {
        let (x, mut y) = profile(300, 3);
        let corner: Vec<usize> = (0..300)
            .filter(|&row| x[[row, 0]] > 1.2 && x[[row, 1]] < -1.0)
            .collect();
        assert!((4..30).contains(&corner.len()));
        for &row in &corner {
            y[row] += 1.2;
        }
        let weights = screen(&x, &y).unwrap();
        let believed = corner.iter().filter(|&&row| weights[row] > 0.5).count();
        assert!(
            believed + 1 >= corner.len(),
            "{believed} of {}",
            corner.len()
        );
    }

    #[test]
    fn few_rows_are_all_believed() {
        let x = Array2::from_shape_fn((7, 1), |(row, _)| row as f64);
        let y = [0.0, 0.1, 0.2, 9.0, 0.4, 0.5, 0.6];
        assert_eq!(screen(&x, &y).unwrap(), [1.0; 7]);
    }

    #[test]
    fn wild_values_leave_the_spread() {
        let mut random = Random(5);
        let mut values: Vec<f64> = (0..4000).map(|_| 0.3 * random.normal()).collect();
        assert!((spread(&values) - 0.3).abs() < 0.015);
        values[..400].fill(1e9);
        assert!((spread(&values) - 0.34).abs() < 0.02);
    }

    #[test]
    fn weights_fall_from_one() {
        assert_eq!(huber(-0.5, 1.0), 1.0);
        assert_eq!(huber(-4.0, 1.0), 0.25);
        assert_eq!(bisquare(0.0, 2.0), 1.0);
        assert_eq!(bisquare(1.0, 2.0), 0.5625);
        assert_eq!(bisquare(-2.0, 2.0), 0.0);
        assert_eq!(bisquare(1e9, 2.0), 0.0);
    }
}

//! A weighted sum of parts with weights of at least 0.

use ndarray::{Array1, Array2};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Regression, linear};

/// ln(F) = ln(whole + the sum of w x over every feature x), each w at least 0; the
/// whole may be 0, where the features make it up.
///
/// Features are parts of a whole as they are, at least 0: with a prior, F is
/// what multiplies it, and the parts are its own. So time that is spent one
/// after the other is added up, and what was learned of each part holds for any
/// mixture of them, beyond the training's, too.
#[derive(Clone, Debug, Deserialize, PartialEq, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Sum {
    whole: f64,
    weights: Vec<f64>,
}

/// Of ln(F) - y: within this, about the noise of a measurement, errors count by
/// their squares, and far beyond it by themselves. Where parts do not tell the
/// whole, as in a step that is over before its workers are awake, a sum of them
/// must not be bent for every row.
const BEND: f64 = 0.05;
/// Steps of the fit; it ends earlier when a step gains nothing.
const STEPS: usize = 500;
/// How strongly a step is held back at first, how much less after a good one,
/// how much more after a bad one, and when there is no better one.
const DAMPING: f64 = 1e-2;
const FREER: f64 = 3.0;
const TIGHTER: f64 = 4.0;
const STUCK: f64 = 1e12;
/// The largest change of a weight in a step: a factor of e^2.
const LARGEST: f64 = 2.0;
/// What is added to the diagonal, so that a weight of no influence stays.
const TINY: f64 = 1e-9;
/// A step that gains less than this of the error is the last.
const GAIN: f64 = 1e-12;

impl Regression for Sum {
    fn inputs(&self) -> usize {
        self.weights.len()
    }

    fn predict(&self, x: &[f64]) -> f64 {
        let parts = self.weights.iter().zip(x);
        let sum: f64 = parts.map(|(w, x)| w * x.max(0.0)).sum();
        (self.whole + sum).ln()
    }

    fn check(&self) -> Result<(), String> {
        let mut numbers = self.weights.iter().chain([&self.whole]);
        let fine = |number: &f64| number.is_finite() && *number >= 0.0;
        if !numbers.all(fine) {
            return Err("a weight of the sum is no number of at least 0".into());
        }
        if self.whole == 0.0 && self.weights.iter().all(|weight| *weight == 0.0) {
            return Err("all weights of the sum are 0".into());
        }
        Ok(())
    }
}

/// Fits to rows with weights: minimises the sum of weight L(ln(F) - y), where
/// L(r) = BEND² (sqrt(1 + (r / BEND)²) - 1) is about r² / 2 for small r and
/// BEND |r| for large ones.
///
/// Weights of parts are powers of e, so that they stay above 0, and begin such
/// that every part explains as much as any other. Each step is one of
/// Levenberg and Marquardt.
///
/// Without a `whole` the parts make it up, if there are any.
pub(super) fn fit(x: &Array2<f64>, y: &[f64], weights: &[f64], whole: bool) -> Sum {
    let problem = Problem::of(x, y, weights, whole);
    let mut logs = problem.beginning();
    let mut error = problem.error(&logs);
    let mut damping = DAMPING;
    for _ in 0..STEPS {
        let Some(step) = problem.step(&logs, damping) else {
            break;
        };
        let next: Vec<f64> = (logs.iter().zip(step))
            .map(|(log, step)| log + step.clamp(-LARGEST, LARGEST))
            .collect();
        let reached = problem.error(&next);
        if reached < error {
            let gain = (error - reached) / error;
            (logs, error) = (next, reached);
            damping = (damping / FREER).max(TINY);
            if gain < GAIN {
                break;
            }
        } else {
            damping *= TIGHTER;
            if damping > STUCK {
                break;
            }
        }
    }
    let mut all = vec![0.0; x.ncols() + 1];
    for (&column, log) in problem.columns.iter().zip(&logs) {
        all[column] = log.exp();
    }
    Sum {
        whole: all[0],
        weights: all.split_off(1),
    }
}

/// Parts, of which column 0 is the whole, over what they should add up to.
struct Problem<'a> {
    /// A row's parts side by side.
    parts: Vec<Vec<f64>>,
    /// Which parts they are: those that are not 0 everywhere.
    columns: Vec<usize>,
    weights: &'a [f64],
}

impl<'a> Problem<'a> {
    fn of(x: &Array2<f64>, y: &[f64], weights: &'a [f64], whole: bool) -> Self {
        let there = |column: &usize| x.column(column - 1).iter().any(|value| *value > 0.0);
        let mut columns: Vec<usize> = (1..=x.ncols()).filter(there).collect();
        // Of rows without any part something must be said, too.
        let is_bare = |row: usize| columns.iter().all(|column| x[[row, column - 1]] <= 0.0);
        if whole || (0..x.nrows()).any(is_bare) {
            columns.insert(0, 0);
        }
        let part = |row: usize, column: usize| match column {
            0 => 1.0,
            column => x[[row, column - 1]].max(0.0),
        };
        let parts = (0..x.nrows()).map(|row| {
            let wanted = y[row].exp();
            let row = columns.iter().map(|column| part(row, *column) / wanted);
            row.collect()
        });
        Self {
            parts: parts.collect(),
            columns,
            weights,
        }
    }

    fn beginning(&self) -> Vec<f64> {
        let count = self.columns.len();
        let rows = self.parts.len() as f64;
        (0..count)
            .map(|part| {
                let mean = self.parts.iter().map(|row| row[part]).sum::<f64>() / rows;
                -(mean * count as f64).ln()
            })
            .collect()
    }

    /// What each part adds to a row, of 1 in all.
    fn shares(row: &[f64], logs: &[f64]) -> (Vec<f64>, f64) {
        let mut shares: Vec<f64> = row.iter().zip(logs).map(|(x, log)| x * log.exp()).collect();
        let sum: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= sum);
        (shares, sum)
    }

    fn error(&self, logs: &[f64]) -> f64 {
        let rows = self.parts.iter().zip(self.weights);
        rows.map(|(row, weight)| weight * loss(Self::shares(row, logs).1.ln()))
            .sum()
    }

    /// The change of each log; `None` if there is none.
    fn step(&self, logs: &[f64], damping: f64) -> Option<Array1<f64>> {
        let (rows, count) = (self.parts.len(), logs.len());
        let mut matrix = Array2::zeros((rows + count, count));
        let mut right = Array1::zeros(rows + count);
        for (row, (parts, weight)) in self.parts.iter().zip(self.weights).enumerate() {
            let (shares, sum) = Self::shares(parts, logs);
            let root = (weight * bent(sum.ln())).sqrt();
            right[row] = -root * sum.ln();
            for (part, share) in shares.iter().enumerate() {
                matrix[[row, part]] = root * share;
            }
        }
        for part in 0..count {
            let influence = matrix.column(part).mapv(|share| share * share).sum();
            matrix[[rows + part, part]] = (damping * (influence + TINY)).sqrt();
        }
        linear::least_squares(matrix, right).ok()
    }
}

/// What an error counts, see [`fit`].
fn loss(error: f64) -> f64 {
    BEND * BEND * ((1.0 + (error / BEND).powi(2)).sqrt() - 1.0)
}

/// The weight with which its square would count as much: [`loss`]'s derivative
/// over the error.
fn bent(error: f64) -> f64 {
    1.0 / (1.0 + (error / BEND).powi(2)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::Random;
    use super::*;

    /// Rows of three parts, of which the last is never there.
    fn rows(wanted: impl Fn(f64, f64) -> f64) -> (Array2<f64>, Vec<f64>) {
        let mut random = Random(5);
        let x = Array2::from_shape_fn((40, 3), |(_, column)| match column {
            2 => 0.0,
            _ => 10.0 * random.even().abs(),
        });
        let y = x.rows().into_iter().map(|row| wanted(row[0], row[1]).ln());
        let y = y.collect();
        (x, y)
    }

    #[test]
    fn what_adds_up_is_found() {
        let (x, y) = rows(|a, b| 0.5 + 2.0 * a + 0.25 * b);
        let sum = fit(&x, &y, &[1.0; 40], true);
        for (found, right) in [
            (sum.whole, 0.5),
            (sum.weights[0], 2.0),
            (sum.weights[1], 0.25),
        ] {
            assert!((found - right).abs() < 1e-6 * right, "{sum:?}");
        }
        assert_eq!(sum.weights[2], 0.0);
        // Far beyond what was seen, too.
        let beyond = sum.predict(&[1e6, 0.0, 0.0]);
        assert!((beyond - (2e6f64 + 0.5).ln()).abs() < 1e-6, "{beyond}");
    }

    #[test]
    fn parts_that_make_up_the_whole_need_none_beside_them() {
        let (x, y) = rows(|a, b| 0.5 + 2.0 * a + 0.25 * b);
        let sum = fit(&x, &y, &[1.0; 40], false);
        assert_eq!(sum.whole, 0.0);
        assert!(sum.check().is_ok());
        let (x, y) = rows(|a, b| 2.0 * a + 0.25 * b);
        let sum = fit(&x, &y, &[1.0; 40], false);
        assert!((sum.weights[1] - 0.25).abs() < 1e-6, "{sum:?}");
    }

    #[test]
    fn a_part_that_helps_nothing_vanishes() {
        let (x, y) = rows(|a, b| 3.0 * a / (1.0 + 0.01 * b));
        let sum = fit(&x, &y, &[1.0; 40], true);
        assert!(sum.weights[1] < 0.01 * sum.weights[0], "{sum:?}");
        assert!(sum.check().is_ok());
    }

    #[test]
    fn a_row_of_no_weight_is_not_there() {
        let (x, mut y) = rows(|a, b| 1.0 + a + b);
        let mut weights = [1.0; 40];
        weights[7] = 0.0;
        let before = fit(&x, &y, &weights, true);
        y[7] = 40.0;
        let after = fit(&x, &y, &weights, true);
        for row in x.rows() {
            let (a, b) = (before.predict(&row.to_vec()), after.predict(&row.to_vec()));
            assert!((a - b).abs() < 1e-6, "{a} {b}");
        }
    }

    #[test]
    fn what_parts_do_not_explain_bends_no_other_row() {
        // Of a fifth of the rows they tell half at most.
        let (x, mut y) = rows(|a, b| 0.5 + 2.0 * a + 0.25 * b);
        y.iter_mut().step_by(5).for_each(|y| *y += 0.7);
        let sum = fit(&x, &y, &[1.0; 40], true);
        for (row, y) in x.rows().into_iter().zip(&y).skip(1).step_by(5) {
            let error = sum.predict(&row.to_vec()) - y;
            assert!(error.abs() < 0.03, "{error}, {sum:?}");
        }
    }

    #[test]
    fn without_parts_it_is_a_constant() {
        let x = Array2::zeros((3, 0));
        let sum = fit(&x, &[0.0, 2.0, 4.0], &[1.0, 1.0, 1.0], false);
        assert!((sum.predict(&[]) - 2.0).abs() < 1e-6, "{sum:?}");
    }

    #[test]
    fn nothing_takes_anything_away() {
        let text = r#"{"whole": 1.0, "weights": [-0.5]}"#;
        assert!(serde_json::from_str::<Sum>(text).unwrap().check().is_err());
    }
}

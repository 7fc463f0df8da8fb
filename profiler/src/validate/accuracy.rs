//! The figures of prediction errors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::median;

/// How far predictions of positive quantities are off. Errors are fractions
/// of what was measured: 0.02 is 2 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accuracy {
    /// Mean absolute percentage error, of all rows.
    pub mape: f64,
    /// Median absolute percentage error.
    pub median: f64,
    /// The error of the row that is predicted worst.
    pub greatest: f64,
    /// The part of the variation that is explained, of the logarithms as the
    /// paper's models have them (section 3.2); 1 at best, below 0 if the mean
    /// would predict better, and 0 if nothing varies.
    pub r_squared: f64,
}

impl Accuracy {
    /// Of pairs (measured, predicted), all finite and above 0. All figures are
    /// 0 if there is no pair.
    pub fn of(pairs: &[(f64, f64)]) -> Self {
        if pairs.is_empty() {
            return Self::default();
        }
        let mut errors: Vec<f64> = pairs.iter().map(|&(m, p)| ((p - m) / m).abs()).collect();
        errors.sort_by(f64::total_cmp);
        Self {
            mape: mean(&errors),
            median: median(&errors).unwrap_or(0.0),
            greatest: errors[errors.len() - 1],
            r_squared: r_squared(pairs),
        }
    }
}

fn r_squared(pairs: &[(f64, f64)]) -> f64 {
    let measured: Vec<f64> = pairs.iter().map(|(m, _)| m.ln()).collect();
    let centre = mean(&measured);
    let total: f64 = measured.iter().map(|m| (m - centre).powi(2)).sum();
    let residual: f64 = pairs.iter().map(|(m, p)| (m / p).ln().powi(2)).sum();
    if total > 0.0 {
        1.0 - residual / total
    } else {
        0.0
    }
}

/// The mean; 0 of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The standard error of the values' mean; 0 of fewer than two.
pub fn standard_error(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if n < 2.0 {
        return 0.0;
    }
    let centre = mean(values);
    let variance = values.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / (n - 1.0);
    (variance / n).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn figures_of_a_small_case() {
        let pairs = [(1.0, 1.1), (2.0, 1.8), (4.0, 4.0), (10.0, 13.0)];
        let accuracy = Accuracy::of(&pairs);
        assert!(close(accuracy.mape, 0.125), "{accuracy:?}");
        assert!(close(accuracy.median, 0.1), "{accuracy:?}");
        assert!(close(accuracy.greatest, 0.3), "{accuracy:?}");
        let mean = (80.0_f64).ln() / 4.0;
        let total: f64 = pairs.iter().map(|(m, _)| (m.ln() - mean).powi(2)).sum();
        let left = (1.1_f64).ln().powi(2) + (0.9_f64).ln().powi(2) + (1.3_f64).ln().powi(2);
        assert!(close(accuracy.r_squared, 1.0 - left / total));
    }

    #[test]
    fn a_tenth_of_disturbed_rows_moves_the_mean_and_not_the_median() {
        let mut pairs: Vec<(f64, f64)> = (1..=20).map(|i| (f64::from(i), f64::from(i))).collect();
        pairs[3].0 *= 5.0;
        pairs[11].0 *= 5.0;
        let accuracy = Accuracy::of(&pairs);
        assert!(close(accuracy.mape, 0.08), "{accuracy:?}");
        assert_eq!(accuracy.median, 0.0);
        assert!(close(accuracy.greatest, 0.8), "{accuracy:?}");
    }

    #[test]
    fn what_does_not_vary_cannot_be_explained() {
        assert_eq!(Accuracy::of(&[(2.0, 2.0), (2.0, 2.0)]).r_squared, 0.0);
        assert_eq!(Accuracy::of(&[]), Accuracy::default());
        assert!(Accuracy::of(&[(1.0, 9.0), (2.0, 9.0)]).r_squared < 0.0);
    }

    #[test]
    fn the_standard_error_of_a_mean() {
        assert!(close(
            standard_error(&[1.0, 2.0, 3.0]),
            (1.0_f64 / 3.0).sqrt()
        ));
        assert_eq!(standard_error(&[5.0]), 0.0);
    }
}

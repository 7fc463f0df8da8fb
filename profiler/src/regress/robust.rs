//! Robust statistics, which a few outliers do not change.

use crate::median;

/// The median absolute deviation of normal values is this part of their
/// deviation.
const NORMAL: f64 = 0.674_489_750_196_082;

/// Tukey's bisquare gives up values beyond this many deviations; 4.685 keeps
/// 95 % of the efficiency of least squares on normal values.
pub const CUT: f64 = 4.685;

/// The deviation of values around 0 (residuals), from the median of their distances
/// from it: up to half of them may be outliers.
pub fn spread(values: &[f64]) -> f64 {
    median(values.iter().map(|value| value.abs())).unwrap_or(0.0) / NORMAL
}

/// Huber's weight of a residual: 1 up to `bend`, then falling as 1 / residual.
/// Least squares repeated with it always arrives, from wherever it starts.
pub fn huber(residual: f64, bend: f64) -> f64 {
    if residual.abs() <= bend {
        1.0
    } else {
        bend / residual.abs()
    }
}

/// Tukey's bisquare weight of a residual: near 1 around 0, and 0 from `cut` on.
pub fn bisquare(residual: f64, cut: f64) -> f64 {
    if residual.abs() >= cut {
        return 0.0;
    }
    (1.0 - (residual / cut).powi(2)).powi(2)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::Random;
    use super::*;

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

//! Statistics that a few wild values do not move.

/// The median absolute deviation of normal values is this part of their
/// deviation.
const NORMAL: f64 = 0.674_489_750_196_082;

/// Tukey's bisquare gives up values beyond this many deviations; 4.685 keeps
/// 95 % of the efficiency of least squares on normal values.
pub const CUT: f64 = 4.685;

/// The median, or 0 of nothing.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        length if length % 2 == 1 => sorted[middle],
        _ => 0.5 * (sorted[middle - 1] + sorted[middle]),
    }
}

/// The deviation of values around 0 (residuals), from the median of their
/// distances from it: up to half of them may be wild.
pub fn spread(values: &[f64]) -> f64 {
    let distances: Vec<f64> = values.iter().map(|value| value.abs()).collect();
    median(&distances) / NORMAL
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

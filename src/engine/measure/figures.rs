//! Computes figures from times.

use crate::time::Nanos;

/// Seconds between two times, at least a nanosecond.
pub fn seconds(from: Nanos, to: Nanos) -> f64 {
    to.saturating_sub(from).max(1) as f64 * 1e-9
}

/// The middle one, or the mean of the middle two; 0 of none.
pub fn median(figures: Vec<f64>) -> f64 {
    pdawl_profiler::median(figures).unwrap_or(0.0)
}

/// To four digits, as much as a measurement is worth.
pub fn rounded(figure: f64) -> f64 {
    if figure == 0.0 || !figure.is_finite() {
        return figure;
    }
    let scale = 10f64.powi(3 - figure.abs().log10().floor() as i32);
    if scale.is_finite() && scale > 0.0 {
        (figure * scale).round() / scale
    } else {
        figure
    }
}

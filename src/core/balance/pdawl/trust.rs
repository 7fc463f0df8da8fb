//! Trust in a cost model's predictions for a device: the ratio of measured to expected
//! seconds, and its spread (Geng et al., section 3.2: measured times are compared
//! with the baseline, and the confidence interval follows).
//!
//! As in [`rates`](crate::balance::dawl::rates), one outlier changes nothing, and a
//! second one alike is a change.

use crate::balance::dawl::rates::{Estimate, Verdict};

/// Standard deviations of the confidence interval.
const SURE: f64 = 3.0;
/// The least confidence interval: a smaller gap needs no other structure of the plan,
/// and shares follow the measurements anyway.
const LARGE: f64 = 0.1;
/// Weight of the last observation in the spread.
const LAST: f64 = 0.2;
/// Standard deviation over mean deviation, of normal noise.
const NORMAL: f64 = 1.2533;
/// The factor of the spread after a surprise.
const WIDER: f64 = 2.0;
/// Bounds of the spread.
const LEAST: f64 = 0.005;
const MOST: f64 = 0.5;

/// Trust in what a model says of one device.
#[derive(Clone, Debug)]
pub struct Trust {
    ratio: Estimate,
    /// Relative standard deviation of measured from expected seconds.
    spread: f64,
}

impl Trust {
    /// Trust before any measurement: a ratio of 1, and the spread of the model's
    /// validation.
    pub fn new(spread: f64) -> Self {
        let spread = if spread.is_nan() { MOST } else { spread };
        Self {
            ratio: Estimate::of(1.0),
            spread: spread.clamp(LEAST, MOST),
        }
    }

    /// The device took `measured` seconds where the model says `expected`.
    pub fn observe(&mut self, measured: f64, expected: f64) -> Verdict {
        let ratio = measured / expected;
        if !ratio.is_finite() || ratio <= 0.0 {
            return Verdict::Fits;
        }
        let off = (ratio / self.ratio()).ln().abs();
        let verdict = self.ratio.observe_within(ratio, self.interval());
        let spread = match verdict {
            Verdict::Fits => self.spread + LAST * (NORMAL * off - self.spread),
            Verdict::Suspect => self.spread,
            Verdict::Changed => WIDER * self.spread,
        };
        self.spread = spread.clamp(LEAST, MOST);
        verdict
    }

    /// The model has been corrected by the measurements: the ratio is 1 again, the
    /// spread stays.
    pub fn corrected(&mut self) {
        self.ratio = Estimate::of(1.0);
    }

    /// Whether the last observation was a surprise and is not yet confirmed.
    pub fn is_suspect(&self) -> bool {
        self.ratio.is_suspect()
    }

    /// Measured over expected seconds.
    pub fn ratio(&self) -> f64 {
        self.ratio.value().unwrap_or(1.0)
    }

    /// The confidence interval: relative deviation from the ratio that is no surprise.
    pub fn interval(&self) -> f64 {
        (SURE * self.spread).max(LARGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(spread: f64, ratios: &[f64]) -> Trust {
        let mut trust = Trust::new(spread);
        for ratio in ratios {
            trust.observe(*ratio, 1.0);
        }
        trust
    }

    #[test]
    fn it_narrows_when_predictions_come_true_and_widens_when_not() {
        let (before, right) = (Trust::new(0.1), after(0.1, &[1.0; 10]));
        assert!(right.spread < 0.2 * before.spread);
        let wrong = after(0.1, &[1.15, 0.88, 1.2, 0.85, 1.15, 0.86]);
        assert!(wrong.spread > 1.2 * before.spread);
        assert!(wrong.interval() > before.interval());
    }

    #[test]
    fn a_constant_bias_is_learned_and_no_surprise() {
        let trust = after(0.05, &[1.1; 12]);
        assert_eq!(trust.ratio(), 1.1);
        assert!(trust.spread < 0.02);
    }

    #[test]
    fn one_outlier_leaves_no_trace_and_a_second_is_a_change() {
        let mut trust = after(0.03, &[1.0, 1.01, 0.99]);
        let spread = trust.spread;
        assert_eq!(trust.observe(3.0, 1.0), Verdict::Suspect);
        assert_eq!((trust.ratio(), trust.spread), (1.0, spread));
        assert_eq!(trust.observe(1.0, 1.0), Verdict::Fits);
        trust.observe(2.1, 1.0);
        assert_eq!(trust.observe(2.0, 1.0), Verdict::Changed);
        assert_eq!(trust.ratio(), 2.0);
        assert!(trust.spread > spread);
    }

    #[test]
    fn a_model_that_is_known_to_scatter_does_not_surprise() {
        let mut trust = Trust::new(0.2);
        assert_eq!(trust.observe(1.5, 1.0), Verdict::Fits);
        assert_eq!(Trust::new(0.02).observe(1.5, 1.0), Verdict::Suspect);
    }

    #[test]
    fn nonsense_is_ignored() {
        for (measured, expected) in [(1.0, 0.0), (0.0, 1.0), (f64::NAN, 1.0), (1.0, f64::NAN)] {
            let mut trust = Trust::new(0.1);
            assert_eq!(trust.observe(measured, expected), Verdict::Fits);
            assert_eq!(trust.ratio(), 1.0);
        }
        assert_eq!(Trust::new(f64::NAN).spread, MOST);
    }
}

//! What predictions of steps with streams are worth. Rates are measured one by
//! one, but a pipeline must fill, and transfers and kernels slow one another:
//! such a step may take half as long again as the rates say, while one without
//! streams is predicted well.

use super::rates::Estimate;

/// How many times a prediction a step may take without the prediction being
/// doubted: rates explain no more than that. Only what a step takes beyond it
/// counts, so that a step or two near it do not decide for good.
const DOUBTFUL: f64 = 1.1;

/// The ratio of measured to predicted seconds of steps with streams.
#[derive(Clone, Debug, Default)]
pub(super) struct Calibration(Estimate);

impl Calibration {
    /// Takes in a step of `seconds` of which the rates say `said`.
    pub fn observe(&mut self, seconds: f64, said: f64) {
        if said > 0.0 {
            self.0.observe(seconds / said);
        }
    }

    /// By what to multiply a prediction.
    pub fn kept(&self) -> f64 {
        self.0
            .value()
            .map_or(1.0, |ratio| (ratio / DOUBTFUL).max(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predictions_are_believed_until_they_are_far_off() {
        let mut calibration = Calibration::default();
        assert_eq!(calibration.kept(), 1.0);
        calibration.observe(1.05, 1.0);
        assert_eq!(calibration.kept(), 1.0);
        calibration.observe(3.3, 2.0);
        calibration.observe(3.3, 2.0);
        assert!((calibration.kept() - 1.5).abs() < 1e-9);
    }

    #[test]
    fn one_step_that_was_disturbed_changes_nothing() {
        let mut calibration = Calibration::default();
        for seconds in [1.0, 1.01, 5.0, f64::NAN, 1.0] {
            calibration.observe(seconds, 1.0);
        }
        calibration.observe(1.0, 0.0);
        assert_eq!(calibration.kept(), 1.0);
    }
}

//! Trust in a cost model's predictions for a device: the ratio of measured to expected
//! seconds, and its spread (Geng et al., section 3.2: measured times are compared
//! with the baseline, and the confidence interval follows).
//!
//! As in [`rates`](crate::balance::dawl::rates), one outlier changes nothing, and a
//! second one alike is a change.

use super::{Pdawl, supposed};
use crate::balance::dawl::chunks::seconds;
use crate::balance::dawl::rates::{Estimate, Verdict};
use crate::balance::{DeviceStep, StepPlan, StepReport};

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

// Compares measured with expected seconds of each device, and reacts to a confirmed
// surprise.

/// Successive surprises after which the model is no longer asked.
const SURPRISES: u32 = 3;
/// Steps within which surprises are successive.
const SOON: u32 = 8;
/// A device's seconds show its speed from this part of a step on.
const TELLING: f64 = 0.25;
/// Rounds of the search for slowdowns that explain the measurements, the error of
/// their logarithm at which it ends, and the greatest slowdown.
const ROUNDS: u32 = 16;
const CLOSE: f64 = 0.05;
const MOST_OFF: f64 = 100.0;

/// What a step has shown of the devices.
pub(super) struct Shown {
    did: StepPlan,
    /// Seconds of each device, where they show its speed.
    seconds: Vec<Option<f64>>,
}

impl Pdawl {
    /// Compares a step with the model's expectations for the same work. Returns whether
    /// a change of a device is confirmed.
    pub(super) fn compare(&mut self, shown: &Shown) -> bool {
        let answered = self.answered.take();
        let answered = answered.filter(|(plan, of, _)| *plan == shown.did && *of == self.assumed);
        let forecast = match answered {
            Some((.., forecast)) => forecast,
            None => self.planner.expect(&shown.did, &self.assumed),
        };
        // Reports of steps enqueued ahead arrive after other steps have been planned.
        let is_present = shown.did.held == self.dawl.present().held;
        let mut changed = false;
        for (d, expected) in forecast.devices.iter().enumerate() {
            if let Some(measured) = shown.seconds[d] {
                let verdict = self.trust[d].observe(measured, expected.seconds);
                changed |= verdict == Verdict::Changed;
                let faster = 1.0 / self.trust[d].ratio();
                if is_present {
                    self.dawl.suppose(d, &supposed(expected).at(faster));
                }
            }
        }
        self.answered = Some((shown.did.clone(), self.assumed.clone(), forecast));
        changed
    }

    /// What a step has shown.
    pub(super) fn shown(&self, report: &StepReport) -> Shown {
        let moved = report.moved > 0;
        let took = |d: usize| {
            // Moves take bandwidth of the host's memory.
            let disturbed = moved && self.setup.devices[d].capacity.is_none();
            let did = &report.devices[d];
            let start = match moved {
                true => self.dawl.start(d)?.min(seconds(did.waited)),
                false => seconds(did.waited),
            };
            let worked = worked(did, start);
            let tells = worked >= TELLING * seconds(report.duration);
            (self.alive[d] && tells && !disturbed).then_some(worked)
        };
        Shown {
            did: StepPlan {
                held: report.devices.iter().map(|did| did.held).collect(),
                pooled: report.devices.iter().map(|did| did.pooled).collect(),
            },
            seconds: (0..report.devices.len()).map(took).collect(),
        }
    }

    /// Reacts to a confirmed surprise: asks for a new plan with slowdowns that explain
    /// the measurements. Where there are none, or surprises are successive, the
    /// model is no longer asked.
    pub(super) fn surprised(&mut self, step: u32, shown: &Shown) {
        let soon = (self.surprised).is_some_and(|at| self.reports - at <= SOON);
        self.surprises = if soon { self.surprises + 1 } else { 1 };
        self.surprised = Some(self.reports);
        self.dawl.relearn(step);
        let explained = self.explain(shown);
        match explained.filter(|_| self.surprises < SURPRISES) {
            Some(slowdown) => {
                self.assume(slowdown);
                self.due = true;
            }
            None => self.hand_over(step + 1),
        }
    }

    /// The slowdowns with which the model expects the measurements; `None` if there are
    /// none. Found in rounds, since devices share memory bandwidth.
    fn explain(&self, shown: &Shown) -> Option<Vec<f64>> {
        let mut slowdown = self.slowdown();
        for _ in 0..ROUNDS {
            let forecast = self.planner.expect(&shown.did, &slowdown);
            let mut is_far = false;
            for (d, expected) in forecast.devices.iter().enumerate() {
                if let Some(measured) = shown.seconds[d] {
                    let off = measured / expected.seconds;
                    is_far |= (off.ln().abs() > CLOSE) || !off.is_finite();
                    slowdown[d] = (slowdown[d] * off).clamp(1.0 / MOST_OFF, MOST_OFF);
                }
            }
            if !is_far {
                return Some(slowdown);
            }
        }
        None
    }
}

/// Seconds of a device's part of a step until its end was known, had its work started
/// after `start` and without pauses before it helped others.
fn worked(did: &DeviceStep, start: f64) -> f64 {
    let until = seconds(did.known) - (seconds(did.waited) - start);
    if did.pooled == 0 {
        return until;
    }
    let busy = seconds(did.held_busy) + seconds(did.pooled_busy);
    let telling = seconds(did.known.saturating_sub(did.finished));
    until.min(start + busy + telling)
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

    #[test]
    fn what_is_compared_ends_when_the_end_is_known() {
        let did = DeviceStep {
            held: 50,
            held_busy: 60_000,
            waited: 20_000,
            finished: 92_000,
            known: 107_000,
            ..DeviceStep::default()
        };
        // Kernels, then the read of an edge, then the driver tells.
        assert!((worked(&did, 20e-6) - 107e-6).abs() < 1e-12);
        // Units that changed hands kept it for a while.
        assert!((worked(&did, 5e-6) - 92e-6).abs() < 1e-12);
    }

    #[test]
    fn pauses_before_help_do_not_count() {
        let did = DeviceStep {
            pooled: 50,
            pooled_busy: 60_000,
            waited: 10_000,
            finished: 170_000,
            known: 175_000,
            ..DeviceStep::default()
        };
        assert!((worked(&did, 10e-6) - 75e-6).abs() < 1e-12);
    }
}

//! Compares measured with expected seconds of each device, and reacts to a confirmed
//! surprise.

use super::{Pdawl, supposed};
use crate::balance::dawl::chunks::seconds;
use crate::balance::dawl::rates::Verdict;
use crate::balance::{DeviceStep, StepPlan, StepReport};

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
const MOST: f64 = 100.0;

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
        let forecast = self.planner.expect(&shown.did, &self.assumed);
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
                    slowdown[d] = (slowdown[d] * off).clamp(1.0 / MOST, MOST);
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

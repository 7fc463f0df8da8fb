//! What a step has shown: rates, overheads, and whether a device changed for
//! good (steps 3 and 6).

use super::Dawl;
use super::handout::seconds;
use super::launches::Kernels;
use super::rates::{Estimate, NEVER_SUDDEN, Verdict};
use crate::balance::{DeviceStep, StepReport};

/// A rate beside streams, or without any, counts if it was seen on this part of
/// what a device did in the step. The last chunks are small, and end soon after
/// one whose slowest core was late: they say little.
const ENOUGH: u64 = 4;
/// The same of a rate of which nothing is known.
const BETTER_THAN_NOTHING: u64 = 96;
/// Streamed chunks that tell whether a device streams faster or slower.
const STREAMED: u64 = 8;

impl Dawl {
    /// Takes in what a device did in a step. Says whether it changed for good.
    pub(super) fn observe(&mut self, d: usize, did: &DeviceStep, anew: bool, moved: bool) -> bool {
        let mut changed = false;
        let more = self.more_launches(d, did.held);
        let gauge = &mut self.gauges[d];
        let mut take = |estimate: &mut Estimate, observed: f64| {
            if anew {
                estimate.observe_anew(observed);
                return false;
            }
            let sudden = estimate.observe(observed) == Verdict::Changed;
            changed |= sudden;
            sudden
        };
        if did.held > 0 && did.held_busy > 0 {
            let kernels = Kernels {
                units: (did.held + did.beside) as f64,
                more,
                chunks: did.beside_launches as f64,
                seconds: seconds(did.held_busy),
            };
            gauge.learn_launches(&kernels, anew, moved);
            let rate = gauge.launches_left_out(&kernels);
            if take(&mut gauge.held, rate) {
                gauge.launch.start_over();
                gauge.chunk.forget();
            }
        } else {
            gauge.held.unobserved();
        }
        let progress = self.handout.progress(d);
        let (rate, alone) = match self.devices[d].capacity {
            Some(_) => (progress.rate().filter(|_| progress.done > 0), None),
            None => {
                let least = self.grain[d].min_chunk().min(progress.done);
                let enough = |of: &Estimate| match of.observed() {
                    Some(_) => progress.done.div_ceil(ENOUGH),
                    None => progress.done.div_ceil(BETTER_THAN_NOTHING).max(least),
                };
                let beside = progress.beside_rate(enough(&gauge.pool));
                (beside, progress.alone_rate(enough(&gauge.alone)))
            }
        };
        let on_host = self.devices[d].capacity.is_none();
        let known = gauge.pool.value().is_some();
        let enough = !known || progress.done >= self.grain[d].min_chunk();
        // A few chunks' way through a pipeline is not its pace, and no alarm.
        let telling = on_host || progress.chunks() >= STREAMED;
        // Units that change hands take bandwidth, and chunks wait for them.
        let disturbed = moved && on_host && (known || gauge.alone.value().is_some());
        let rate = rate.filter(|_| enough && !disturbed);
        let quiet = self.quiet.is_some();
        let mut note = |seen: Option<f64>, of: &mut Estimate, meant: bool| {
            let Some(rate) = seen else {
                of.unobserved();
                return 1.0;
            };
            let before = of.observed();
            // Of conditions that were planned, and not seen of late, the first
            // step tells the most. What comes unplanned may come of a disturbance.
            if meant && of.is_stale() {
                of.observe_anew(rate);
            } else if telling || anew {
                take(of, rate);
            } else {
                of.observe_within(rate, NEVER_SUDDEN);
            }
            before
                .zip(of.observed())
                .map_or(1.0, |(before, after)| after / before)
        };
        // What changes its speed changes it in the case not seen, too.
        let pool = note(rate, &mut gauge.pool, !quiet);
        let single = note(alone, &mut gauge.alone, quiet);
        if rate.is_none() {
            gauge.pool.scale(single);
        }
        if alone.is_none() {
            gauge.alone.scale(pool);
        }
        // While units change hands, devices wait for those as well; and one that
        // was alone waited for less than it will beside others, or for nothing.
        let was_alone = did.held == self.units;
        let disturbed = was_alone || moved && gauge.overhead.value().is_some();
        if did.held + did.pooled > 0 && !disturbed {
            let busy = did.held_busy.max(did.pooled_busy);
            // One without chunks waits for nobody: whatever is not a kernel's
            // time is its own, at the step's end as at its begin.
            let own = match did.pooled {
                0 => did.known.saturating_sub(busy),
                _ => {
                    let telling = did.known.saturating_sub(did.finished);
                    did.waited.min(did.finished.saturating_sub(busy)) + telling
                }
            };
            gauge.overhead.observe_anew(seconds(own));
            gauge.start.observe_anew(seconds(did.waited));
        }
        changed
    }

    /// A step's seconds less the wait for units that changed hands.
    pub(super) fn without_moves(&self, report: &StepReport) -> f64 {
        let waited = (report.devices.iter().zip(&self.gauges))
            .map(|(did, gauge)| seconds(did.waited) - gauge.start.value().unwrap_or(0.0))
            .fold(0.0, f64::max);
        let waited = if report.moved > 0 { waited } else { 0.0 };
        seconds(report.duration) - waited
    }
}

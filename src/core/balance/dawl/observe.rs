//! Reads a step's report: rates, overheads, and whether a device has changed for good
//! (steps 3 and 6).

use super::Dawl;
use super::chunks::seconds;
use super::rates::{Conditions, Kernels, NEVER_SUDDEN, PoolRates, Verdict};
use crate::balance::{DeviceStep, StepReport};

/// Streamed chunks from which on a step can show a change of a stream's rate.
const STREAMED: u64 = 8;

impl Dawl {
    /// Updates the estimates of device `d` by a step. Returns whether it has changed for
    /// good.
    pub(super) fn observe(&mut self, d: usize, did: &DeviceStep, anew: bool, moved: bool) -> bool {
        let mut changed = false;
        let more = self.more_launches(d, did.held);
        let progress = &self.progress(d);
        let holding = self.may_hold_alone() && self.plan.pooled.iter().all(|units| *units == 0);
        let rates = &mut self.rates[d];
        if did.held > 0 && did.held_busy > 0 {
            let kernels = Kernels {
                units: (did.held + did.beside) as f64,
                more,
                chunks: did.beside_launches as f64,
                streamed: did.beside as f64,
                seconds: seconds(did.held_busy),
            };
            rates.learn_launches(&kernels, anew, moved);
            let rate = rates.launches_left_out(&kernels);
            if anew {
                rates.held.observe_perhaps_anew(rate);
            } else if rates.held.observe(rate) == Verdict::Changed {
                changed = true;
                rates.launch.start_over();
                rates.chunk.forget();
            }
        } else {
            rates.held.unobserved();
        }
        let least = self.granularity[d].min_chunk();
        let on_host = self.devices[d].capacity.is_none();
        let seen = match on_host {
            true => PoolRates::of(progress, rates, least),
            false => PoolRates {
                beside: progress.rate(),
                alone: None,
            },
        };
        let known = rates.pool.value().is_some();
        let enough = !known || progress.done >= least;
        // Moves take memory bandwidth, and chunks wait for them.
        let disturbed = moved && on_host && (known || rates.alone.value().is_some());
        let seen = PoolRates {
            beside: seen.beside.filter(|_| enough && !disturbed),
            ..seen
        };
        let under = Conditions {
            anew,
            unstreamed: self.unstreamed.is_some(),
            // A few chunks show the latency of a pipeline, not its rate.
            telling: on_host || progress.chunks() >= STREAMED,
            disturbed: moved,
        };
        changed |= rates.observe_pace(seen, under);
        // Moves add to the overhead, and a lone device has less of it.
        let was_alone = did.held == self.units;
        let of = if holding {
            &mut rates.holding
        } else {
            &mut rates.overhead
        };
        let disturbed = was_alone || moved && of.value().is_some();
        if did.held + did.pooled > 0 && !disturbed {
            let busy = did.held_busy.max(did.pooled_busy);
            // Without chunks, all time outside the kernels is the device's own.
            let own = match did.pooled {
                0 => did.known.saturating_sub(busy),
                _ => {
                    let telling = did.known.saturating_sub(did.finished);
                    did.waited.min(did.finished.saturating_sub(busy)) + telling
                }
            };
            // A single step's wait is mostly chance.
            for (estimate, waited) in [(of, own), (&mut rates.start, did.waited)] {
                match anew {
                    true => estimate.observe_anew(seconds(waited)),
                    false => _ = estimate.observe_within(seconds(waited), NEVER_SUDDEN),
                }
            }
        }
        changed
    }

    /// A step's seconds less the wait for moves.
    pub(super) fn without_moves(&self, report: &StepReport) -> f64 {
        let waited = (report.devices.iter().zip(&self.rates))
            .map(|(did, rates)| seconds(did.waited) - rates.start.value().unwrap_or(0.0))
            .fold(0.0, f64::max);
        let waited = if report.moved > 0 { waited } else { 0.0 };
        seconds(report.duration) - waited
    }
}

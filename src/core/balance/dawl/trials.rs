//! The choice of trials: which device more or fewer, and whether streams or none,
//! promises to pay (step 6). [`super::active_set`] runs and ends a trial.

use super::active_set::{Change, PROMISE, STREAMING_STEPS};
use super::partition::{self, Ability, Partition};
use super::{Dawl, LEARNING};
use crate::balance::StepPlan;

/// A trial must gain so many times the cost of its moves: one that fails moves the
/// units back.
const TRIAL_PAYS: f64 = 2.0;
/// A device with a smaller share may be left out.
const SMALL_SHARE: f64 = 0.1;
/// The same among devices that all compute on host memory, as a part of an equal
/// share: no rate shows how much memory bandwidth they take from one another.
const SMALL_AMONG: f64 = 0.5;
/// The part of a step that such a trial may cost, by the rates.
const TRIED: f64 = 0.2;
/// Steps that must be left for streams, or none, to be tried.
const LONG: u32 = 40;
/// The same for streams that were never seen but in probes.
const VERY_LONG: u32 = 80;
/// The part of what is left of a run that such a trial may cost, by the rates.
const TRIAL_COST: f64 = 0.02;

impl Dawl {
    /// Begins the trial that promises to pay, if there is one. `either` are the
    /// seconds of a step without streams and with them.
    pub(super) fn explore(
        &mut self,
        step: u32,
        partition: &Partition,
        either: Option<[f64; 2]>,
    ) -> bool {
        let reference = self.predicted(partition);
        let share = |d: &usize| partition.held[*d] + partition.pooled[*d];
        let small = SMALL_SHARE * self.units as f64;
        let mut leaving = self.active.candidates(step, true);
        let among = self.on_host(partition).filter(|_| step == LEARNING);
        let few = among.map_or(0.0, |count| SMALL_AMONG * self.units as f64 / count as f64);
        leaving.retain(|d| (share(d) as f64) < small.max(few));
        leaving.sort_by_key(share);
        for device in leaving {
            let Some((best, without)) = self.at_best_without(device, partition, among) else {
                continue;
            };
            let is_cheap = without.seconds <= (1.0 + TRIED) * reference;
            if (is_cheap || among.is_none()) && self.pays(step, reference, best, &without) {
                let change = Change::Device(device);
                self.active.begin(change, step, reference, &self.rates);
                return true;
            }
        }
        for device in self.active.candidates(step, false) {
            if self.would_help(step, device, reference) {
                let change = Change::Device(device);
                self.active.begin(change, step, reference, &self.rates);
                return true;
            }
            self.active.defer(device, step);
        }
        either.is_some_and(|either| self.try_streams(step, either))
    }

    /// A plan gives work to more devices than before. Rates measured separately may promise more
    /// than the devices do together, so the steps before the plan judge it.
    pub(super) fn compare_joined(&mut self, step: u32, plan: &StepPlan) {
        let (Some(reference), None, None) = (self.fastest_step, &self.guide, &self.active.trial)
        else {
            return;
        };
        let works = |plan: &StepPlan| -> Vec<bool> {
            (plan.held.iter().zip(&plan.pooled))
                .map(|(held, pooled)| held + pooled > 0)
                .collect()
        };
        let (before, now) = (works(&self.plan), works(plan));
        let stay = before.iter().zip(&now).all(|(before, now)| *now || !before);
        if stay && before != now && before.contains(&true) {
            let change = Change::Joined(before);
            self.active.begin(change, step, reference, &self.rates);
        }
    }

    /// Begins a trial of streams where there are none, or of none where there are, if
    /// it costs little by the rates. In a very long run, streams that only probes have
    /// seen are tried in any case: probes of a bad moment would rule them out for good.
    fn try_streams(&mut self, step: u32, [unstreamed, streaming]: [f64; 2]) -> bool {
        let streams = self.unstreamed.is_none();
        let is_seen = self.alike.steps >= STREAMING_STEPS;
        if !is_seen || self.active.streams(step).is_some() {
            return false;
        }
        let (stay, change) = match streams {
            true => (streaming, unstreamed),
            false => (unstreamed, streaming),
        };
        let left = self.steps.saturating_sub(step);
        let cost = f64::from(STREAMING_STEPS + 1) * (change - stay);
        let is_cheap = left >= LONG && cost < TRIAL_COST * f64::from(left) * stay;
        let is_unknown = !streams && !self.has_streamed && left >= VERY_LONG;
        if is_cheap || is_unknown {
            let reference = self.alike.fastest;
            self.active
                .begin(Change::Streaming(!streams), step, reference, &[]);
        }
        is_cheap || is_unknown
    }

    /// Whether a trial of a partition that takes `seconds` promises to pay.
    fn pays(&self, step: u32, reference: f64, seconds: f64, to: &Partition) -> bool {
        let remaining = f64::from(self.steps.saturating_sub(step));
        let gain = reference - seconds;
        gain > PROMISE * reference && gain * remaining > TRIAL_PAYS * self.moving(&to.held)
    }

    /// Whether adding `device` to the active set promises to pay.
    pub(super) fn would_help(&self, step: u32, device: usize, reference: f64) -> bool {
        let with = self.together(Some(device));
        with.is_some_and(|with| self.pays(step, reference, with.seconds, &with))
    }

    /// Predicted seconds of a step with this partition, its barrier included.
    pub(super) fn predicted(&self, partition: &Partition) -> f64 {
        partition.seconds + self.barrier.value().unwrap_or(0.0)
    }

    /// The least time that a step without `device` could take, and its partition. A lone
    /// device has no overhead, nor have devices that need no barrier, before it is measured.
    /// The others get at most the memory bandwidth that `device` used, `among` so many devices
    /// on host memory.
    fn at_best_without(
        &self,
        device: usize,
        partition: &Partition,
        among: Option<usize>,
    ) -> Option<(f64, Partition)> {
        let without = self.best(Some(device), |abilities| {
            let mut abilities = abilities.to_vec();
            let works = |d: &usize| abilities[*d] != Ability::default();
            let others: Vec<usize> = (0..abilities.len()).filter(works).collect();
            let (lone, all_hold) = (others.len() == 1, self.all_hold(Some(device)));
            for device in others {
                let is_measured = self.rates[device].holding.observed().is_some();
                if lone || all_hold && self.direct.is_some() && !is_measured {
                    abilities[device].overhead = 0.0;
                }
            }
            partition::finish_together(self.units, &abilities)
        })?;
        let share_the_host = partition.pooled[device] > 0
            && (partition.pooled.iter().enumerate()).any(|(d, units)| d != device && *units > 0);
        let relief = match (share_the_host, among) {
            // At most an equal part of the bandwidth.
            (true, Some(count)) => 1.0 / count as f64,
            (true, None) => partition.pooled[device] as f64 / self.units as f64,
            (false, _) => 0.0,
        };
        Some((without.seconds * (1.0 - relief), without))
    }

    /// The number of devices with work, if they are several and all on host memory.
    fn on_host(&self, partition: &Partition) -> Option<usize> {
        let works = |d: &usize| partition.held[*d] + partition.pooled[*d] > 0;
        let working = (0..self.devices.len()).filter(works);
        let all = (working.clone()).all(|d| self.devices[d].capacity.is_none());
        let count = working.count();
        (all && count > 1).then_some(count)
    }
}

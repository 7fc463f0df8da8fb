//! Thinking a step ahead. A plan is thought out while everybody waits, on caches
//! that the step has emptied: beside an H200 that took 20 us of a step of 1.4 ms.
//! In settled times the new plan is the old one. So once the devices are at work,
//! the coming step is prepared with what is known until then; if it is to go as
//! this one does, it begins at once, and this one's report is read while it runs.
//! Not after a surprise: a device that changes is suspected from one report and
//! convicted by the next, and a change is answered no later than without this.

use super::chunks::{Progress, StepIntent, seconds};
use super::partition::Partition;
use super::{Dawl, SETTLING};
use crate::time::Nanos;

/// Planned pools that differ by less than this part of them are alike: who is
/// through takes from the others.
const ALIKE: f64 = 0.02;
/// A step that takes so many times as long as the fastest may be the first of
/// many: the next one must be ready to help whoever has become slow.
const SURPRISE: f64 = 1.1;

/// What is known of the coming step, and of one that has not been reported.
#[derive(Clone, Debug, Default)]
pub(super) struct Ahead {
    /// How the coming step is meant to go, if its plan is the present one.
    pub prepared: Option<StepIntent>,
    /// What the devices had done when the step ended whose report is to come.
    pub ended: Option<Vec<Progress>>,
}

impl Dawl {
    /// Prepares the coming step, if its plan is the present one.
    pub(super) fn prepare(&mut self, step: u32) {
        self.ahead.prepared = None;
        let quiet_since = self.changed.unwrap_or(0).max(self.replanned);
        let is_long_ago = self.reports > SETTLING && step > quiet_since + SETTLING;
        if !is_long_ago || !self.is_settled(step) || self.active.trial.is_some() {
            return;
        }
        let active = self.active.clone();
        let Some(partition) = self.shares(step).filter(|other| self.is_present(other)) else {
            // A trial, or other shares: with the report that is to come.
            if let Some(rates) = std::mem::replace(&mut self.active, active).call_off() {
                self.rates = rates;
            }
            return;
        };
        if self.quiet.is_some() {
            self.quiet = Some(partition.seconds);
        }
        self.ahead.prepared = Some(StepIntent {
            expected: self.expectations(&partition.held),
            quiet: self.quiet,
            moving: false,
            settled: true,
        });
    }

    /// Begins the step that was prepared, if one was, and if the step that has
    /// just ended, and `took` so long, is no surprise.
    pub(super) fn begin_prepared(&mut self, step: u32, took: Nanos) -> bool {
        let usual = self.fastest_step.unwrap_or(0.0);
        let is_surprise = seconds(took) > SURPRISE * usual;
        let Some(intent) = self.ahead.prepared.take().filter(|_| !is_surprise) else {
            return false;
        };
        let all = 0..self.devices.len();
        self.ahead.ended = Some(all.map(|d| *self.chunks.progress(d)).collect());
        self.planned = step;
        self.chunks.begin(&self.plan, &self.granularity, intent);
        true
    }

    /// What a device did of the pool in the step that is reported.
    pub(super) fn progress(&self, device: usize) -> Progress {
        match &self.ahead.ended {
            Some(ended) => ended[device],
            None => *self.chunks.progress(device),
        }
    }

    /// Whether a partition is the present plan.
    fn is_present(&self, partition: &Partition) -> bool {
        let Partition { held, pooled, .. } = partition;
        let (all, apart) = (self.plan.pooled.iter().zip(pooled))
            .fold((0, 0), |(all, apart), (now, then)| {
                (all + now, apart + now.abs_diff(*then))
            });
        *held == self.plan.held
            && self.is_quiet(held, pooled) == self.quiet.is_some()
            && apart as f64 <= ALIKE * all as f64
    }
}

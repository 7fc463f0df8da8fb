//! Prepares the coming step while the devices work. Planning at a barrier keeps all
//! devices waiting: 20 us of a step of 1.4 ms beside an H200. In settled times the
//! new plan equals the present one, so the step begins at once, and the report of the
//! step before is read while it runs. After a step that took unusually long, the
//! report is read first, so that a change is answered without delay.

use super::chunks::{Progress, StepIntent, seconds};
use super::partition::Partition;
use super::{Dawl, SETTLING};
use crate::time::Nanos;

/// Planned pools that differ by less than this part are alike: devices that finish
/// early help the others.
const ALIKE: f64 = 0.02;
/// A step that takes so many times as long as the fastest may show a change.
const SURPRISE: f64 = 1.1;

/// The prepared step, and the one that has not been reported.
#[derive(Clone, Debug, Default)]
pub(super) struct Ahead {
    /// The intent of the coming step, if its plan is the present one.
    pub prepared: Option<StepIntent>,
    /// The devices' progress at the end of the step whose report is to come.
    pub ended: Option<Vec<Progress>>,
}

impl Dawl {
    /// Prepares the coming step, if its plan is the present one.
    pub(super) fn prepare(&mut self, step: u32) {
        self.ahead.prepared = None;
        let last_change = self.changed.unwrap_or(0).max(self.replanned);
        let is_long_ago = self.reports > SETTLING && step > last_change + SETTLING;
        if !is_long_ago || !self.is_settled(step) || self.active.trial.is_some() {
            return;
        }
        let active = self.active.clone();
        let Some(partition) = self.shares(step).filter(|other| self.is_present(other)) else {
            // Other shares, or a trial, are decided once the report has come.
            if let Some(rates) = std::mem::replace(&mut self.active, active).call_off() {
                self.rates = rates;
            }
            return;
        };
        if self.unstreamed.is_some() {
            self.unstreamed = Some(partition.seconds);
        }
        self.ahead.prepared = Some(StepIntent {
            expected: self.expectations(&partition.held),
            unstreamed: self.unstreamed,
            moving: false,
            settled: true,
        });
    }

    /// Begins the prepared step, if there is one and the step that has just ended
    /// after `took` did not take unusually long.
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

    /// A device's progress on the pool in the step that is reported.
    pub(super) fn progress(&self, device: usize) -> Progress {
        match &self.ahead.ended {
            Some(ended) => ended[device],
            None => *self.chunks.progress(device),
        }
    }

    /// Whether a partition is the present plan.
    fn is_present(&self, partition: &Partition) -> bool {
        let Partition { held, pooled, .. } = partition;
        let (all, moved) = (self.plan.pooled.iter().zip(pooled))
            .fold((0, 0), |(all, moved), (now, then)| {
                (all + now, moved + now.abs_diff(*then))
            });
        *held == self.plan.held
            && self.is_unstreamed(held, pooled) == self.unstreamed.is_some()
            && moved as f64 <= ALIKE * all as f64
    }
}

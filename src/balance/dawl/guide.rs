//! Being led by somebody who knows more than was measured, such as a cost
//! model: a given plan is followed as it is, and then its structure is kept, so
//! no part of anybody's work is tried, and whether somebody streams stays as it
//! was given. Shares follow what is measured.

use super::Dawl;
use super::partition::Partition;
use super::rates::{RateEstimates, Supposed};
use crate::balance::{Setup, StepPlan};

/// A plan that was given.
#[derive(Clone, Debug)]
pub(super) struct Guide {
    /// The plan itself, until it has been followed.
    pub given: Option<Partition>,
    /// Whether somebody streams in it.
    pub streams: bool,
}

impl Dawl {
    /// A balancer that needs no probes, since it is told one entry a device.
    pub fn knowing(setup: &Setup, supposed: &[Supposed]) -> Self {
        let mut dawl = Self::new(setup).from_equal_shares();
        for (device, supposed) in supposed.iter().enumerate() {
            dawl.suppose(device, supposed);
        }
        dawl
    }

    /// Takes these figures for whatever has not been measured of a device.
    pub fn suppose(&mut self, device: usize, supposed: &Supposed) {
        if let Some(rates) = self.rates.get_mut(device) {
            rates.suppose(supposed);
        }
        // On host memory a chunk costs what a step does that has no other.
        if self
            .devices
            .get(device)
            .is_some_and(|d| d.capacity.is_none())
        {
            self.granularity[device].suppose(supposed.overhead);
        }
    }

    /// Follows a plan in the next step, and keeps its structure from then on.
    pub fn follow(&mut self, given: Partition) {
        let has_work = |d: usize| given.held[d] + given.pooled[d] > 0;
        self.active.appoint(has_work);
        self.rates
            .iter_mut()
            .for_each(RateEstimates::forget_overhead);
        self.guide = Some(Guide {
            streams: !self.is_quiet(&given.held, &given.pooled),
            given: Some(given),
        });
    }

    /// Whether it follows a plan of this structure already.
    pub fn keeps_to(&self, given: &Partition) -> bool {
        let has_work = |d: usize| given.held[d] + given.pooled[d] > 0;
        let streams = !self.is_quiet(&given.held, &given.pooled);
        (self.guide.as_ref()).is_some_and(|guide| guide.streams == streams)
            && (0..self.devices.len()).all(|d| self.active.works(d) == has_work(d))
    }

    /// The plan of the step before.
    pub fn present(&self) -> &StepPlan {
        &self.plan
    }

    /// Seconds of a step before a device's work starts, as measured.
    pub fn start(&self, device: usize) -> Option<f64> {
        self.rates.get(device)?.start.value()
    }

    /// What it was told and has measured has turned out to be wrong in the step
    /// before `step`.
    pub fn relearn(&mut self, step: u32) {
        self.changed = Some(step);
    }

    /// Decides alone from `step` on: everyone takes part, until it turns out
    /// who is worth it.
    pub fn let_go(&mut self, step: u32) {
        self.guide = None;
        self.active.start_over(step);
        self.changed = Some(step);
    }
}

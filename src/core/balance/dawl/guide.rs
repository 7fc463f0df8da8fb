//! The guide: a plan given by a cost model. DAWL follows the plan in the next step
//! and then keeps its structure, which is the active set and whether a device
//! streams. Nothing is tried. Shares follow the measurements.

use super::Dawl;
use super::partition::Partition;
use super::rates::{RateEstimates, Supposed};
use crate::balance::{Setup, StepPlan};

/// A given plan.
#[derive(Clone, Debug)]
pub(super) struct Guide {
    /// The plan itself, until it has been followed.
    pub given: Option<Partition>,
    /// Whether a device streams in it.
    pub streams: bool,
}

impl Dawl {
    /// A balancer without probes, for given estimates of each device.
    pub fn knowing(setup: &Setup, supposed: &[Supposed]) -> Self {
        let mut dawl = Self::new(setup).from_equal_shares();
        for (device, supposed) in supposed.iter().enumerate() {
            dawl.suppose(device, supposed);
        }
        dawl
    }

    /// Supposes these estimates of a device until it is measured.
    pub fn suppose(&mut self, device: usize, supposed: &Supposed) {
        if let Some(rates) = self.rates.get_mut(device) {
            rates.suppose(supposed);
        }
        // On host memory, a step's overhead is that of a single chunk.
        if self
            .devices
            .get(device)
            .is_some_and(|d| d.capacity.is_none())
        {
            self.granularity[device].suppose(supposed.overhead);
        }
    }

    /// Follows a plan in the next step and keeps its structure from then on.
    pub fn follow(&mut self, given: Partition) {
        let has_work = |d: usize| given.held[d] + given.pooled[d] > 0;
        self.active.appoint(has_work);
        self.rates
            .iter_mut()
            .for_each(RateEstimates::forget_overhead);
        self.guide = Some(Guide {
            streams: !self.is_unstreamed(&given.held, &given.pooled),
            given: Some(given),
        });
    }

    /// Whether the present plan has the structure of the given one.
    pub fn keeps_to(&self, given: &Partition) -> bool {
        let has_work = |d: usize| given.held[d] + given.pooled[d] > 0;
        let streams = !self.is_unstreamed(&given.held, &given.pooled);
        (self.guide.as_ref()).is_some_and(|guide| guide.streams == streams)
            && (0..self.devices.len()).all(|d| self.active.works(d) == has_work(d))
    }

    /// The plan of the last step.
    pub fn present(&self) -> &StepPlan {
        &self.plan
    }

    /// Measured seconds from a step's begin until a device's work starts.
    pub fn start(&self, device: usize) -> Option<f64> {
        self.rates.get(device)?.start.value()
    }

    /// The supposed and measured estimates have turned out to be wrong in the step
    /// before `step`.
    pub fn relearn(&mut self, step: u32) {
        self.changed = Some(step);
    }

    /// Decides without a guide from `step` on, beginning with all devices active.
    pub fn let_go(&mut self, step: u32) {
        self.guide = None;
        self.active.start_over(step);
        self.changed = Some(step);
    }
}

//! Fixed shares: the strategies `cpu`, `gpu` and `fixed:...`, and the candidates
//! of the oracle's sweep.

use super::{Balancer, DeviceView, Next, Setup, StepPlan, StepState};
use crate::balance::apportion::largest_remainder;
use crate::time::Nanos;

/// Chunks of a streamed segment, so that writes, kernels and reads overlap.
pub const STREAM_CHUNKS: u64 = 24;

/// A fixed share a device. A device with its own memory holds as many of its units
/// as fit and streams the rest.
#[derive(Clone, Debug)]
pub struct Fixed {
    name: String,
    units: u64,
    steps: u32,
    devices: Vec<DeviceView>,
    shares: Vec<f64>,
    alive: Vec<bool>,
    plan: StepPlan,
    /// The engine has asked for the present plan.
    is_planned: bool,
}

impl Fixed {
    /// One share a device, in any scale. Devices beyond the list's end get no work.
    pub fn new(name: impl Into<String>, setup: &Setup, shares: &[f64]) -> Self {
        let count = setup.devices.len();
        let mut fixed = Self {
            name: name.into(),
            units: setup.units,
            steps: setup.steps,
            devices: setup.devices.clone(),
            shares: (0..count)
                .map(|d| shares.get(d).copied().unwrap_or(0.0).max(0.0))
                .collect(),
            alive: vec![true; count],
            plan: StepPlan::default(),
            is_planned: false,
        };
        fixed.divide();
        fixed
    }

    /// The weight of each remaining device. When all that had a share are lost, the
    /// others share by their compute units.
    fn weights(&self) -> Vec<f64> {
        let of = |weight: &dyn Fn(usize) -> f64| -> Vec<f64> {
            (0..self.devices.len())
                .map(|d| if self.alive[d] { weight(d) } else { 0.0 })
                .collect()
        };
        let shares = of(&|d| self.shares[d]);
        if shares.iter().sum::<f64>() > 0.0 {
            return shares;
        }
        of(&|d| f64::from(self.devices[d].compute_units.max(1)))
    }

    fn divide(&mut self) {
        let counts = largest_remainder(self.units, &self.weights());
        let held: Vec<u64> = (self.devices.iter().zip(&counts))
            .map(|(device, count)| device.capacity.unwrap_or(0).min(*count))
            .collect();
        let pooled = counts.iter().zip(&held).map(|(c, h)| c - h).collect();
        self.plan = StepPlan { held, pooled };
        self.is_planned = false;
    }
}

impl Balancer for Fixed {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn plan(&mut self, _step: u32) -> StepPlan {
        self.is_planned = true;
        self.plan.clone()
    }

    fn keep_plan(&mut self, _step: u32, _took: Nanos) -> bool {
        self.is_planned
    }

    fn next(&mut self, device: usize, state: &StepState) -> Next {
        if !self.alive[device] {
            return Next::Done;
        }
        let own = state.left[device];
        if own == 0 {
            // Only the segment of a lost device may be taken over.
            let orphaned = (0..self.alive.len()).any(|d| !self.alive[d] && state.left[d] > 0);
            return match orphaned {
                true => Next::Take(self.devices[device].min_chunk.max(1)),
                false => Next::Done,
            };
        }
        let view = &self.devices[device];
        match view.capacity {
            None => Next::Take(own),
            Some(_) => {
                let chunk = self.plan.pooled[device].div_ceil(STREAM_CHUNKS);
                Next::Take(chunk.max(view.min_chunk).clamp(1, own))
            }
        }
    }

    fn lost(&mut self, device: usize) {
        self.alive[device] = false;
        self.divide();
    }

    fn returned(&mut self, device: usize, _step: u32) {
        self.alive[device] = true;
        self.divide();
    }

    fn lookahead(&self) -> u32 {
        match self.plan.held.iter().sum::<u64>() == self.units {
            true => self.steps,
            false => 0,
        }
    }
}

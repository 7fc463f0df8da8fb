//! One given plan for all steps, with chunks of a given length: used by profiling
//! and to try a planner's plan.

use super::{Balancer, Fixed, Next, Setup, StepPlan, StepState};

/// One plan for all steps. Each device takes its own segment of the pool in chunks
/// of its own length, and nothing else.
///
/// When a device is lost, the others continue with [`Fixed`] shares in proportion to
/// their planned units.
#[derive(Clone, Debug)]
pub struct Planned {
    units: u64,
    steps: u32,
    plan: StepPlan,
    chunks: Vec<u64>,
    /// The shares of the remaining devices after a loss.
    rest: Fixed,
    lost: bool,
    barriers: bool,
}

impl Planned {
    /// `plan` must divide the units as [`StepPlan`] says, or the engine refuses it.
    /// `chunks` is the units of a chunk, one entry a device; 0, or no entry, means
    /// the whole segment at once. The engine shortens a chunk to the device's
    /// buffers.
    pub fn new(setup: &Setup, plan: StepPlan, chunks: Vec<u64>) -> Self {
        let counts: Vec<f64> = (plan.held.iter().zip(&plan.pooled))
            .map(|(held, pooled)| held.saturating_add(*pooled) as f64)
            .collect();
        Self {
            units: setup.units,
            steps: setup.steps,
            rest: Fixed::new("planned", setup, &counts),
            plan,
            chunks,
            lost: false,
            barriers: false,
        }
    }

    /// The same with a barrier after every step, even where one device holds all
    /// units.
    pub fn with_barriers(mut self) -> Self {
        self.barriers = true;
        self
    }
}

impl Balancer for Planned {
    fn name(&self) -> String {
        "planned".to_owned()
    }

    fn plan(&mut self, step: u32) -> StepPlan {
        match self.lost {
            true => self.rest.plan(step),
            false => self.plan.clone(),
        }
    }

    fn next(&mut self, device: usize, state: &StepState) -> Next {
        if self.lost {
            return self.rest.next(device, state);
        }
        match (state.left[device], self.chunks.get(device)) {
            (0, _) => Next::Done,
            (own, None | Some(0)) => Next::Take(own),
            (own, Some(chunk)) => Next::Take(own.min(*chunk)),
        }
    }

    fn lost(&mut self, device: usize) {
        self.lost = true;
        self.rest.lost(device);
    }

    fn returned(&mut self, device: usize, step: u32) {
        self.rest.returned(device, step);
    }

    fn lookahead(&self) -> u32 {
        let holds_all = self.plan.held.iter().sum::<u64>() == self.units;
        match self.lost {
            _ if self.barriers => 0,
            true => self.rest.lookahead(),
            false if holds_all => self.steps,
            false => 0,
        }
    }
}

//! A balancer that answers at random within the contract of [`Balancer`].

use pdawl_api::balance::{Balancer, Next, Setup, StepPlan, StepState};
use pdawl_api::runtime::Nanos;

use crate::random::Random;

/// Plans, takes chunks and waits at random, within the contract.
pub struct RandomBalancer {
    random: Random,
    setup: Setup,
    alive: Vec<bool>,
    last: StepPlan,
    lookahead: u32,
}

impl RandomBalancer {
    pub fn new(setup: &Setup, seed: u64) -> Self {
        Self {
            random: Random::new(seed ^ 0x5eed),
            setup: setup.clone(),
            alive: vec![true; setup.devices.len()],
            last: StepPlan::default(),
            lookahead: (seed % 3) as u32,
        }
    }
}

impl Balancer for RandomBalancer {
    fn name(&self) -> String {
        "random".into()
    }

    fn plan(&mut self, step: u32) -> StepPlan {
        if self.keep_plan(step, 0) {
            return self.last.clone();
        }
        let n = self.setup.devices.len();
        let mut plan = StepPlan {
            held: vec![0; n],
            pooled: vec![0; n],
        };
        let mut left = self.setup.units;
        if self.random.below(4) == 0 {
            // All units held by one device, if one can.
            let all =
                (0..n).find(|d| self.alive[*d] && self.setup.devices[*d].capacity >= Some(left));
            if let Some(d) = all {
                plan.held[d] = left;
                left = 0;
            }
        }
        for d in 0..n {
            let most = self.setup.devices[d].capacity.unwrap_or(0).min(left);
            if self.alive[d] {
                plan.held[d] += self.random.below(most + 1);
                left -= if left == 0 { 0 } else { plan.held[d] };
            }
        }
        while left > 0 {
            let d = self.random.below(n as u64) as usize;
            if self.alive[d] {
                let part = 1 + self.random.below(left);
                plan.pooled[d] += part;
                left -= part;
            }
        }
        self.last = plan.clone();
        plan
    }

    fn keep_plan(&mut self, _step: u32, _took: Nanos) -> bool {
        let n = self.setup.devices.len();
        let still_good = !self.last.held.is_empty()
            && (0..n).all(|d| self.alive[d] || self.last.held[d] + self.last.pooled[d] == 0);
        still_good && self.random.below(3) > 0
    }

    fn next(&mut self, _device: usize, state: &StepState) -> Next {
        let busy = state.in_flight.iter().any(|n| *n > 0);
        if busy && self.random.below(3) == 0 {
            return Next::Wait;
        }
        Next::Take(1 + self.random.below(1 + state.left.iter().sum::<u64>() / 2))
    }

    fn lost(&mut self, device: usize) {
        self.alive[device] = false;
    }

    fn returned(&mut self, device: usize, _step: u32) {
        self.alive[device] = true;
    }

    fn lookahead(&self) -> u32 {
        self.lookahead
    }
}

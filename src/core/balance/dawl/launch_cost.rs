//! The cost of a launch on held units, from plans with few launches and plans with
//! many for about the same work; and the delay by a streamed chunk.

use super::rates::{Estimate, NEVER_SUDDEN, RateEstimates};

/// A device's kernels on held units in a step, and the streamed ones beside them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kernels {
    /// Units held, and streamed ones beside them.
    pub units: f64,
    /// Launches on held units beyond the first.
    pub more: f64,
    /// Launches on streamed units, and these.
    pub chunks: f64,
    pub streamed: f64,
    pub seconds: f64,
}

/// Launches a unit in two observations must differ by this factor to show the cost of
/// a launch.
const DISTINCT: f64 = 4.0;
/// Seconds that a launch takes at least.
const LEAST: f64 = 1e-9;
/// A delay below this part of a step may be noise.
const NOISE: f64 = 0.04;
/// Streamed chunks from which on their cost exceeds a step's noise.
const SEVERAL: f64 = 3.0;
/// A relative change of a rate that streamed chunks can explain.
const ALIKE: f64 = 0.1;
/// A launch takes at most this part of what it takes with its units.
const MOST: f64 = 0.9;

/// Seconds of each launch on held units beyond the first.
#[derive(Clone, Debug, Default)]
pub struct LaunchCost {
    cost: Estimate,
    /// The last observation with few launches.
    few: Option<Kernels>,
}

impl LaunchCost {
    /// The estimate; 0 until two plans have shown it.
    pub fn seconds(&self) -> f64 {
        self.cost.value().unwrap_or(0.0)
    }

    /// Supposes a cost until it is measured.
    pub fn suppose(&mut self, seconds: Option<f64>) {
        self.cost.suppose(seconds);
    }

    /// Learns from a step. Two steps, of `units / rate + more * cost` seconds each, are
    /// two equations for the rate and the cost.
    pub fn learn(&mut self, seen: Kernels) {
        let Some(few) = self.few else {
            self.few = Some(seen);
            return;
        };
        let (sparse, dense) = (few.more * seen.units, seen.more * few.units);
        if dense > DISTINCT * sparse && dense > few.units {
            let cost = (seen.seconds * few.units - few.seconds * seen.units) / (dense - sparse);
            let most = MOST * seen.seconds / seen.more;
            self.cost.observe_anew(cost.clamp(0.0, most));
        } else if dense <= sparse.max(few.units) {
            self.few = Some(seen);
        }
    }

    /// The device's speed has changed: earlier steps cannot be compared with later
    /// ones.
    pub fn start_over(&mut self) {
        self.few = None;
    }
}

impl RateEstimates {
    /// Units a second of these kernels, without the time of launches.
    pub fn launches_left_out(&self, kernels: &Kernels) -> f64 {
        let chunk = self.chunk.value().unwrap_or(self.launch.seconds());
        let launches = kernels.more * self.launch.seconds() + kernels.chunks * chunk;
        kernels.units / (kernels.seconds - launches).max((1.0 - MOST) * kernels.seconds)
    }

    /// Learns the costs of launches and chunks. `anew`: the plan differs from the one
    /// before; under the same plan, a difference shows a change of the device.
    /// `moved`: units moved, which delays launches.
    pub fn learn_launches(&mut self, kernels: &Kernels, anew: bool, moved: bool) {
        if kernels.chunks == 0.0 {
            if anew {
                self.launch.learn(*kernels);
            }
            return;
        }
        let units_each = kernels.streamed / kernels.chunks;
        (self.chunk_units).observe_within(units_each, NEVER_SUDDEN);
        let Some(rate) = self.held.value() else {
            return;
        };
        // A larger difference shows a change of the device.
        let change = (self.launches_left_out(kernels) / rate - 1.0).abs();
        let is_alike = !self.chunk.is_steady() || change <= ALIKE;
        if moved || kernels.chunks < SEVERAL || !is_alike {
            return;
        }
        let held = kernels.units / rate + kernels.more * self.launch.seconds();
        let delay = kernels.seconds - held;
        let chunk = match delay < NOISE * kernels.seconds {
            true => 0.0,
            false => delay / kernels.chunks,
        };
        let most = MOST * kernels.seconds / kernels.chunks;
        // A difference of two noisy values is noisy: never suspect.
        (self.chunk).observe_within(chunk.clamp(LEAST, most), NEVER_SUDDEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(units: f64, more: f64, speed: f64) -> Kernels {
        Kernels {
            units,
            more,
            chunks: 0.0,
            streamed: 0.0,
            seconds: (units / 11.0 + more * 7.4) / speed,
        }
    }

    #[test]
    fn two_plans_tell_the_cost() {
        let mut launches = LaunchCost::default();
        launches.learn(seen(8000.0, 0.0, 1.0));
        assert_eq!(launches.seconds(), 0.0);
        launches.learn(seen(15_800.0, 47.0, 1.0));
        assert!((launches.seconds() - 7.4).abs() < 1e-9);
        // One with about as many launches tells nothing, in whatever order.
        launches.learn(seen(8000.0, 1.0, 1.02));
        assert!((launches.seconds() - 7.4).abs() < 1e-9);
    }

    #[test]
    fn what_came_before_a_change_is_not_compared() {
        let mut launches = LaunchCost::default();
        launches.learn(seen(8000.0, 0.0, 1.0));
        launches.learn(seen(15_800.0, 47.0, 1.0));
        launches.start_over();
        launches.learn(seen(15_800.0, 47.0, 0.5));
        assert!((launches.seconds() - 7.4).abs() < 1e-9);
    }

    #[test]
    fn it_is_never_negative_nor_everything() {
        let mut launches = LaunchCost::default();
        launches.learn(seen(8000.0, 0.0, 1.0));
        launches.learn(seen(15_800.0, 47.0, 2.0));
        assert_eq!(launches.seconds(), 0.0);
        let mut launches = LaunchCost::default();
        launches.learn(seen(8000.0, 0.0, 1e3));
        launches.learn(seen(15_800.0, 47.0, 1.0));
        let whole = seen(15_800.0, 47.0, 1.0);
        assert!(launches.seconds() <= 0.9 * whole.seconds / 47.0);
    }
}

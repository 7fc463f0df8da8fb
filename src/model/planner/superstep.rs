//! The number of steps between two barriers with which a run ends soonest.

use super::candidate::CandidateDevice;
use super::{RunPlan, plan_by};
use crate::balance::Strategy;
use crate::model::case::StepWork;
use crate::workload::{Grid, Supersteps};

/// More steps than one must be predicted to take less than this part of the time: what is
/// computed twice is certain, and what is saved is not.
const WORTH_IT: f64 = 0.99;

/// Plans a run of steps of a grid by a strategy: the steps between two barriers, as many as the
/// supersteps' period allows, and the plan of a superstep of them. `None` if no device can do
/// anything, or one that the strategy needs is missing.
pub fn plan_supersteps(
    grid: &dyn Grid,
    candidates: &[CandidateDevice],
    strategy: &Strategy,
    steps: Supersteps,
) -> Option<(u32, RunPlan)> {
    let of = |size| of(grid, candidates, strategy, steps.with_size(size));
    let mut best = of(1)?;
    for size in sizes(steps.period()) {
        let Some(other) = of(size) else {
            continue;
        };
        let worth_it = if best.1 == 1 { WORTH_IT } else { 1.0 };
        if other.0 < worth_it * best.0 {
            best = other;
        }
    }
    Some((best.1, best.2))
}

/// Seconds of all supersteps, their size, and the plan of the first one.
fn of(
    grid: &dyn Grid,
    candidates: &[CandidateDevice],
    strategy: &Strategy,
    supersteps: Supersteps,
) -> Option<(f64, u32, RunPlan)> {
    let seconds = |steps: u32| {
        let plan = plan_by(strategy, &StepWork::of_superstep(grid, steps), candidates)?;
        Some((plan.forecast.step_seconds, plan))
    };
    let (first, plan) = seconds(supersteps.size())?;
    let mut all = 0.0;
    for (length, count) in supersteps.lengths() {
        let each = match length == supersteps.size() {
            true => first,
            false => seconds(length)?.0,
        };
        all += f64::from(count) * each;
    }
    Some((all, supersteps.size(), plan))
}

/// The sizes that are tried: up to 8 each one, then so that each differs by an eighth or more
/// from the one before, and only those that divide the steps most evenly.
fn sizes(steps: u32) -> Vec<u32> {
    let mut sizes: Vec<u32> = Vec::new();
    let mut size = 2;
    while size <= steps {
        // As many supersteps, none of which is longer than it must be.
        sizes.push(steps.div_ceil(steps.div_ceil(size)));
        size = size.saturating_add((size / 8).max(1));
        if size == u32::MAX {
            break;
        }
    }
    sizes.push(steps);
    sizes.retain(|size| *size > 1);
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::fixtures::{grid, machine};
    use crate::model::planner::MemoryKind;
    use crate::model::{Descriptors, Physics};

    fn candidates(name: &str, gpu_memory: u64) -> Vec<CandidateDevice> {
        let machine = machine(name);
        let physics = |device| {
            let descriptors = Descriptors::of(&machine, device, "stencil5-f64", true);
            Arc::new(Physics(descriptors))
        };
        let device = &machine.devices[0];
        let host = CandidateDevice::host(&machine, physics(None));
        let gpu = CandidateDevice::device(device, Some(gpu_memory), physics(Some(device)));
        assert!(matches!(gpu.memory, MemoryKind::Discrete { .. }));
        vec![host, gpu]
    }

    #[test]
    fn sizes_are_those_that_differ() {
        assert!(sizes(1).is_empty());
        assert_eq!(sizes(2), [2]);
        assert_eq!(sizes(7), [2, 3, 4, 7]);
        assert_eq!(sizes(30), [2, 3, 4, 5, 6, 8, 10, 15, 30]);
        assert!(sizes(u32::MAX).len() < 300);
    }

    /// What a GPU streams is worth as many steps as it takes until kernels bind; what it holds
    /// by itself is not.
    #[test]
    fn a_grid_that_is_streamed_has_longer_supersteps() {
        let of = |memory| {
            let gpu = &candidates("h200", memory)[1..];
            plan_supersteps(&grid(16_384), gpu, &Strategy::Dawl, 32).expect("a plan")
        };
        let (little, plan) = of(512 << 20);
        assert!((8..=32).contains(&little), "{little}");
        assert!(plan.forecast.plan.pooled[0] > 0, "{plan:?}");
        assert_eq!(of(64 << 30).0, 1);
    }
}

//! Recorded: what ran somewhere runs there again, in the order in which it began. A device waits
//! for its next component, even if others are ready.

use std::collections::BTreeSet;

use super::{Policy, Problem, WINDOW};
use crate::time::Nanos;

/// The policy. Once a device was lost, each gets the first ready component that it can run.
pub struct Recorded {
    problem: Problem,
    /// By component: its device, and its place in the order of all.
    schedule: Vec<(usize, usize)>,
    /// By device: the places and numbers of components that it was not given yet.
    left: Vec<BTreeSet<(usize, usize)>>,
    /// Those that are ready.
    ready: BTreeSet<(usize, usize)>,
    was_lost: bool,
}

impl Recorded {
    /// The policy of a schedule: by component, its device and its place in the order of all.
    pub fn new(problem: Problem, schedule: Vec<(usize, usize)>) -> Self {
        Self {
            left: vec![BTreeSet::new(); problem.devices.len()],
            ready: BTreeSet::new(),
            was_lost: false,
            problem,
            schedule,
        }
    }
}

impl Policy for Recorded {
    fn name(&self) -> &'static str {
        "recorded"
    }

    fn may_run(&self, component: usize, device: usize) -> bool {
        let is_own = self.schedule[component].0 == device;
        is_own || (self.was_lost && self.problem.able(component, device))
    }

    fn window(&self) -> Option<usize> {
        Some(WINDOW)
    }

    fn begin(&mut self) {
        self.ready.clear();
        self.left.iter_mut().for_each(BTreeSet::clear);
        for (component, (device, place)) in self.schedule.iter().enumerate() {
            self.left[*device].insert((*place, component));
        }
    }

    fn ready(&mut self, component: usize, _now: Nanos) {
        self.ready.insert((self.schedule[component].1, component));
    }

    fn next(&mut self, device: usize, _now: Nanos) -> Option<usize> {
        let mut ready = self.ready.iter();
        let next = match self.was_lost {
            true => ready.find(|(_, component)| self.problem.able(*component, device)),
            false => (self.left[device].first()).filter(|next| self.ready.contains(next)),
        };
        let next = *next?;
        self.ready.remove(&next);
        self.left[device].remove(&next);
        Some(next.1)
    }

    fn changed(&mut self, _device: usize, _lost: bool) {
        self.ready.clear();
        self.was_lost = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::fixtures::layers;

    #[test]
    fn a_device_waits_for_the_component_that_it_had_then() {
        let mut policy = Recorded::new(layers(1, 3, [1.0; 2]), vec![(1, 2), (0, 1), (1, 0)]);
        assert!(policy.may_run(0, 1) && !policy.may_run(0, 0));
        for _ in 0..2 {
            policy.begin();
            policy.ready(0, 0);
            policy.ready(1, 0);
            assert_eq!([policy.next(1, 0), policy.next(0, 0)], [None, Some(1)]);
            policy.ready(2, 0);
            let next = [1; 3].map(|device| policy.next(device, 0));
            assert_eq!(next, [Some(2), Some(0), None]);
        }
        policy.lost(1);
        policy.ready(0, 0);
        policy.ready(2, 0);
        let next = [0; 3].map(|device| policy.next(device, 0));
        assert_eq!(next, [Some(2), Some(0), None]);
    }
}

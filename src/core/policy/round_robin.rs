//! ROUND_ROBIN of MultiCL (Aji, Peña, Balaji and Feng, Parallel Computing 58, 2016).
//!
//! Section 4.1: "The round-robin policy schedules the command queue to the next available
//! device when the scheduler is triggered. This approach is expected to cause the least
//! overhead but not always produce the optimal queue-device map."

use std::collections::VecDeque;

use super::{Policy, Problem};
use crate::time::Nanos;

/// Devices in turns. It knows neither times nor data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    next: usize,
}

impl Turns {
    /// The next one of so many devices that is available, after the one before; `None` if
    /// none is.
    pub fn take(&mut self, devices: usize, available: impl Fn(usize) -> bool) -> Option<usize> {
        let mut all = (0..devices).map(|step| (self.next + step) % devices);
        let device = all.find(|device| available(*device))?;
        self.next = (device + 1) % devices;
        Some(device)
    }
}

/// The policy. A component is the epoch of a command queue of its own, and gets its device
/// when it is ready. A component with a preferred kind of device has no other one if any of
/// that kind can run it.
pub struct RoundRobin {
    problem: Problem,
    window: Option<usize>,
    turns: Turns,
    lost: Vec<bool>,
    /// By device, in the order in which they became ready.
    ready: Vec<VecDeque<usize>>,
}

impl RoundRobin {
    /// The policy in which each device has `window` components at once; `None`: as many as
    /// are ready.
    pub fn new(problem: Problem, window: Option<usize>) -> Self {
        let devices = problem.devices.len();
        Self {
            problem,
            window,
            turns: Turns::default(),
            lost: vec![false; devices],
            ready: vec![VecDeque::new(); devices],
        }
    }
}

impl Policy for RoundRobin {
    fn name(&self) -> &'static str {
        "round-robin"
    }

    fn may_run(&self, component: usize, device: usize) -> bool {
        self.problem.able(component, device)
    }

    fn window(&self) -> Option<usize> {
        self.window
    }

    fn begin(&mut self) {
        self.turns = Turns::default();
        self.ready.iter_mut().for_each(VecDeque::clear);
    }

    fn ready(&mut self, component: usize, _now: Nanos) {
        let (problem, lost) = (&self.problem, &self.lost);
        let devices = lost.len();
        let suits = |device: usize| !lost[device] && problem.suits(component, device);
        let able = |device: usize| !lost[device] && problem.able(component, device);
        let device = match (0..devices).any(suits) {
            true => self.turns.take(devices, suits),
            false => self.turns.take(devices, able),
        };
        if let Some(device) = device {
            self.ready[device].push_back(component);
        }
    }

    fn next(&mut self, device: usize, _now: Nanos) -> Option<usize> {
        self.ready[device].pop_front()
    }

    fn changed(&mut self, device: usize, lost: bool) {
        self.lost[device] = lost;
        self.ready.iter_mut().for_each(VecDeque::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::DeviceKind;
    use crate::policy::fixtures::{layers, run};

    #[test]
    fn devices_get_components_in_turns() {
        let problem = layers(1, 7, [3.0, 1.0]);
        let mut policy = RoundRobin::new(problem.clone(), None);
        let levels = run(&mut policy, &problem, |d, _| [3.0, 1.0][d]);
        assert_eq!(levels, [(12.0, vec![4, 3])]);
    }

    #[test]
    fn who_cannot_run_a_component_is_left_out() {
        let mut problem = layers(1, 4, [1.0, 1.0]);
        problem.tasks[0].seconds[0] = None;
        problem.tasks[1].prefers = Some(DeviceKind::Gpu);
        let mut policy = RoundRobin::new(problem, None);
        (0..4).for_each(|component| policy.ready(component, 0));
        let of = |policy: &mut RoundRobin, device| {
            std::iter::from_fn(|| policy.next(device, 0)).collect::<Vec<_>>()
        };
        assert_eq!(of(&mut policy, 0), [2]);
        assert_eq!(of(&mut policy, 1), [0, 1, 3]);
        policy.lost(1);
        policy.ready(2, 0);
        policy.ready(3, 0);
        assert_eq!(of(&mut policy, 0), [2, 3]);
    }

    #[test]
    fn no_device_has_no_turn() {
        assert_eq!(Turns::default().take(0, |_| true), None);
        assert_eq!(Turns::default().take(3, |_| false), None);
    }
}

//! Tasks that have their device and order before the run begins, Ready order and task
//! stealing: what Algorithms 3 and 4 of Gonthier, Marchal and Thibault (IPDPS 2022) have
//! in common. `partition` and `mhfp` make the orders.

use super::device_lists::{DeviceLists, ListOptions};
use super::{Eviction, Finished, Policy, Problem};
use crate::time::Nanos;

/// The policy. A device computes its tasks in Ready order. When its list is empty it
/// takes half of the longest list.
pub struct Assigned {
    problem: Problem,
    name: &'static str,
    window: usize,
    lists: DeviceLists,
    /// By task: its device, and its position in the orders put one after the other.
    places: Vec<(usize, usize)>,
    lost: Vec<bool>,
}

impl Assigned {
    /// The policy of this name (with LRU and with LUF) in which each device has these tasks, every task once.
    pub(super) fn new(
        [lru, luf]: [&'static str; 2],
        problem: Problem,
        orders: &[Vec<usize>],
        options: ListOptions,
    ) -> Self {
        let mut places = vec![(0, 0); problem.tasks.len()];
        let by_device = orders.iter().enumerate();
        let all =
            by_device.flat_map(|(device, order)| order.iter().map(move |task| (device, task)));
        for (position, (device, task)) in all.enumerate() {
            places[*task] = (device, position);
        }
        Self {
            name: match options.eviction {
                Eviction::Lru => lru,
                Eviction::Luf => luf,
            },
            window: options.window,
            lists: DeviceLists::new(&problem, options.eviction),
            places,
            lost: vec![false; problem.devices.len()],
            problem,
        }
    }
}

impl Policy for Assigned {
    fn name(&self) -> &'static str {
        self.name
    }

    fn may_run(&self, component: usize, device: usize) -> bool {
        self.problem.able(component, device)
    }

    fn window(&self) -> Option<usize> {
        Some(self.window)
    }

    fn begin(&mut self) {
        self.lists.clear();
    }

    fn ready(&mut self, component: usize, _now: Nanos) {
        let (assigned, position) = self.places[component];
        let able = |device: &usize| !self.lost[*device] && self.problem.able(component, *device);
        let devices = (0..self.lost.len()).filter(able);
        let shortest = devices.min_by_key(|device| self.lists.count(*device));
        let device = Some(assigned).filter(able).or(shortest);
        if let Some(device) = device {
            self.lists.push(&self.problem, device, component, position);
        }
    }

    fn next(&mut self, device: usize, _now: Nanos) -> Option<usize> {
        if self.lists.count(device) == 0 {
            self.lists.steal(&self.problem, device);
        }
        self.lists.pop(&self.problem, device)
    }

    fn finished(&mut self, finished: &Finished) {
        self.lists.finished(&self.problem, finished);
    }

    fn lost(&mut self, device: usize) {
        self.lost[device] = true;
        self.lists.lose(device);
    }

    fn returned(&mut self, device: usize) {
        self.lost[device] = false;
        self.lists.lose(device);
    }

    fn arrived(&mut self, device: usize, datum: usize) {
        self.lists.arrived(&self.problem, device, datum);
    }

    fn evicted(&mut self, device: usize, datum: usize) {
        self.lists.evicted(&self.problem, device, datum);
    }

    fn victim(&mut self, device: usize, evictable: &dyn Fn(usize) -> bool) -> Option<usize> {
        self.lists.victim(device, evictable)
    }
}

/// By task: the mean seconds of the devices that can run it.
pub(super) fn mean_seconds(problem: &Problem) -> Vec<f64> {
    let mean = |seconds: &[Option<f64>]| {
        let able = seconds.iter().flatten();
        able.clone().sum::<f64>() / able.count().max(1) as f64
    };
    problem
        .tasks
        .iter()
        .map(|task| mean(&task.seconds))
        .collect()
}

/// By device: the part of the work with which all devices end together, if nothing but
/// their speeds matters. The parts add up to 1.
pub(super) fn shares(problem: &Problem) -> Vec<f64> {
    let devices = problem.devices.len();
    let means = mean_seconds(problem);
    let mut speeds = vec![0.0; devices];
    for (task, mean) in problem.tasks.iter().zip(means) {
        for (speed, seconds) in speeds.iter_mut().zip(&task.seconds) {
            *speed += seconds
                .filter(|seconds| *seconds > 0.0)
                .map_or(0.0, |s| mean / s);
        }
    }
    let sum: f64 = speeds.iter().sum();
    match sum > 0.0 {
        true => speeds.into_iter().map(|speed| speed / sum).collect(),
        false => vec![1.0 / devices as f64; devices],
    }
}

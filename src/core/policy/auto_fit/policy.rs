//! AUTO_FIT as a policy of task graphs.

use super::iteration::Plan;
use super::{Epoch, MapSearch, QueueDatum, Situation, TransferCosts, fit};
use crate::policy::ready_queue::ReadyQueue;
use crate::policy::{Policy, Problem};
use crate::residency::Places;
use crate::time::Nanos;

/// Queues that are mapped together: so few that a decision takes milliseconds.
const TOGETHER: usize = 8;

/// Partial maps that a decision examines at most.
const MOST: usize = 4_000;

/// The policy. A component is the epoch of a command queue of its own, and the data begin
/// in host memory.
///
/// The map is made before the run, for up to eight components at a time in the order of
/// their levels and ranks. Those that follow begin where these end. A component with a
/// preferred kind of device has no other one if any of that kind can run it. What does
/// not fit a device's memory is not considered.
pub struct AutoFit {
    problem: Problem,
    window: Option<usize>,
    /// By component: its device, if any device that is left can run it.
    map: Vec<Option<usize>>,
    lost: Vec<bool>,
    /// By device.
    ready: Vec<ReadyQueue>,
}

impl AutoFit {
    /// The policy in which each device has `window` components at once; `None`: as many as
    /// are ready.
    pub fn new(problem: Problem, window: Option<usize>) -> Self {
        let devices = problem.devices.len();
        let lost = vec![false; devices];
        Self {
            map: map(&problem, &lost),
            ready: vec![ReadyQueue::default(); devices],
            problem,
            window,
            lost,
        }
    }

    /// Other devices are there than before.
    fn map_anew(&mut self) {
        self.ready.iter_mut().for_each(ReadyQueue::clear);
        self.map = map(&self.problem, &self.lost);
    }

    /// By component: its device; `None` if no device can run it.
    pub fn map(&self) -> &[Option<usize>] {
        &self.map
    }
}

/// The map of all components to devices that are not lost.
fn map(problem: &Problem, lost: &[bool]) -> Vec<Option<usize>> {
    let devices = problem.devices.len();
    let costs = TransferCosts::of(problem);
    let mut data = given(problem);
    let mut busy = vec![0.0; devices];
    let mut ends = vec![0.0_f64; problem.tasks.len()];
    let mut map = vec![None; problem.tasks.len()];
    for together in order(problem).chunks(TOGETHER) {
        let able = |component: usize| {
            (0..devices).any(|device| !lost[device] && problem.able(component, device))
        };
        let together: Vec<usize> = together.iter().copied().filter(|c| able(*c)).collect();
        let situation = Situation {
            epochs: (together.iter())
                .map(|component| epoch(problem, lost, &together, &ends, *component))
                .collect(),
            data: data.clone(),
            costs: costs.clone(),
            busy: busy.clone(),
            iterations: 1.0,
        };
        let fitted = fit(&situation, MapSearch { most: MOST });
        let (Some(fit), Some(plan)) = (fitted, Plan::new(&situation)) else {
            // A figure is no number: what the devices cost alone decides.
            for (epoch, component) in situation.epochs.iter().zip(&together) {
                let by_seconds = |one: &usize, other: &usize| {
                    epoch.seconds[*one].total_cmp(&epoch.seconds[*other])
                };
                map[*component] = (0..devices)
                    .filter(|device| !lost[*device] && problem.able(*component, *device))
                    .min_by(by_seconds);
            }
            continue;
        };
        let (_, state) = plan.predict(&fit.map);
        for (index, datum) in data.iter_mut().enumerate() {
            datum.places = state.places(index);
        }
        for (index, component) in together.iter().enumerate() {
            map[*component] = Some(fit.map[index]);
            ends[*component] = state.end[index];
        }
        busy = state.free;
    }
    map
}

/// The components by level, and within a level by rank.
fn order(problem: &Problem) -> Vec<usize> {
    let mut order: Vec<usize> = (0..problem.tasks.len()).collect();
    order.sort_by(|one, other| {
        let (one, other) = (&problem.tasks[*one], &problem.tasks[*other]);
        let by_rank = other.rank.total_cmp(&one.rank);
        one.level.cmp(&other.level).then(by_rank)
    });
    order
}

/// The data before a run: in host memory.
fn given(problem: &Problem) -> Vec<QueueDatum> {
    let host = problem.devices.len();
    let datum = |bytes| QueueDatum {
        bytes,
        places: Places::only(host),
    };
    problem.data.iter().map(|d| datum(d.bytes)).collect()
}

/// A component as the epoch of a queue among those that are mapped together.
fn epoch(
    problem: &Problem,
    lost: &[bool],
    together: &[usize],
    ends: &[f64],
    component: usize,
) -> Epoch {
    let task = &problem.tasks[component];
    let devices = 0..problem.devices.len();
    let suits = |device: usize| !lost[device] && problem.suits(component, device);
    let any_suits = devices.clone().any(suits);
    let seconds = devices.map(|device| {
        let takes_part = match any_suits {
            true => suits(device),
            false => !lost[device],
        };
        let seconds = task.seconds[device].filter(|_| takes_part);
        seconds.unwrap_or(f64::INFINITY).max(0.0)
    });
    let mut earliest = 0.0_f64;
    let mut after = Vec::new();
    for before in &task.predecessors {
        match together.iter().position(|other| other == before) {
            Some(index) => after.push(index),
            None => earliest = earliest.max(ends[*before]),
        }
    }
    Epoch {
        seconds: seconds.collect(),
        reads: task.inputs.clone(),
        writes: task.outputs.clone(),
        after,
        earliest,
        ..Epoch::default()
    }
}

impl Policy for AutoFit {
    fn name(&self) -> &'static str {
        "auto-fit"
    }

    fn may_run(&self, component: usize, device: usize) -> bool {
        self.map[component] == Some(device)
    }

    fn certain(&self, component: usize) -> Option<usize> {
        self.map[component]
    }

    fn window(&self) -> Option<usize> {
        self.window
    }

    fn begin(&mut self) {
        self.ready.iter_mut().for_each(ReadyQueue::clear);
    }

    fn ready(&mut self, component: usize, _now: Nanos) {
        if let Some(device) = self.map[component] {
            self.ready[device].push(&self.problem, component);
        }
    }

    fn next(&mut self, device: usize, _now: Nanos) -> Option<usize> {
        self.ready[device].pop()
    }

    fn changed(&mut self, device: usize, lost: bool) {
        self.lost[device] = lost;
        self.map_anew();
    }
}

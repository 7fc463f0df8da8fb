//! A list of tasks for each device, in Ready order (Gonthier, Marchal and Thibault,
//! IPDPS 2022, Algorithm 2), with task stealing (section IV.B).
//!
//! Ready gives a device the first task of its list that needs the fewest bytes loaded.
//! StarPU scans the list for each one. Here the bytes that each task lacks are kept up
//! to date as data come and go, and a tournament tree over the positions has the first
//! least one, so a list of 100,000 tasks costs no more than a short one.

use super::lacks::Holdings;
use super::luf::{Eviction, Luf};
use super::problem::Adjacency;
use super::tournament::Tournament;
use super::{Finished, Policy, Problem};
use crate::time::Nanos;

/// What the policies with lists have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListOptions {
    /// How many tasks a device has at once; at least 1.
    pub window: usize,
    /// The paper's DMDAR, hMETIS+R and mHFP use LRU.
    pub eviction: Eviction,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self {
            window: super::WINDOW,
            eviction: Eviction::Lru,
        }
    }
}

pub(super) struct DeviceLists {
    inputs: Adjacency,
    readers: Adjacency,
    pub holdings: Holdings,
    luf: Option<Luf>,
    /// By task: the device in whose list it is, its position there, and the bytes that
    /// it lacks.
    owner: Vec<Option<usize>>,
    position: Vec<usize>,
    absent: Vec<u64>,
    /// By position: the task. All lists number positions alike, so that a stolen task
    /// keeps its own.
    task_at: Vec<usize>,
    /// By device: over the positions, the fewer bytes the greater the key.
    order: Vec<Tournament>,
    count: Vec<usize>,
}

impl DeviceLists {
    pub fn new(problem: &Problem, eviction: Eviction) -> Self {
        let (tasks, devices) = (problem.tasks.len(), problem.devices.len());
        Self {
            inputs: Adjacency::inputs(problem),
            readers: Adjacency::readers(problem),
            holdings: Holdings::new(problem),
            luf: (eviction == Eviction::Luf).then(|| Luf::new(problem)),
            owner: vec![None; tasks],
            position: vec![0; tasks],
            absent: vec![0; tasks],
            task_at: vec![0; tasks],
            order: vec![Tournament::new(tasks); devices],
            count: vec![0; devices],
        }
    }

    /// Empties the lists and forgets all data.
    pub fn clear(&mut self) {
        self.holdings.clear();
        self.luf.iter_mut().for_each(Luf::clear);
        self.empty();
    }

    /// Empties the lists. A lost device has no data.
    pub fn lose(&mut self, device: usize) {
        self.holdings.lose(device);
        self.luf.iter_mut().for_each(|luf| luf.lose(device));
        self.empty();
    }

    fn empty(&mut self) {
        self.owner.fill(None);
        self.order.iter_mut().for_each(Tournament::clear);
        self.count.fill(0);
    }

    /// Tasks in a device's list.
    pub fn count(&self, device: usize) -> usize {
        self.count[device]
    }

    /// Puts a task into a device's list, at a position below the number of tasks that
    /// no other task has.
    pub fn push(&mut self, problem: &Problem, device: usize, task: usize, position: usize) {
        self.owner[task] = Some(device);
        self.position[task] = position;
        self.task_at[position] = task;
        self.absent[task] = self.holdings.absent_bytes(problem, task, device);
        self.order[device].set(position, key(self.absent[task]));
        self.count[device] += 1;
        if let Some(luf) = &mut self.luf {
            luf.plan(device, self.inputs.of(task));
        }
    }

    fn remove(&mut self, device: usize, task: usize) {
        self.owner[task] = None;
        self.order[device].set(self.position[task], 0);
        self.count[device] -= 1;
        if let Some(luf) = &mut self.luf {
            luf.withdraw(device, self.inputs.of(task));
        }
    }

    /// Takes the first task of a device's list that lacks the fewest bytes, and gives
    /// it to the device.
    pub fn pop(&mut self, problem: &Problem, device: usize) -> Option<usize> {
        let task = self.task_at[self.order[device].first()?];
        self.remove(device, task);
        let inputs = &problem.tasks[task].inputs;
        for datum in inputs {
            if self.holdings.reserve(device, *datum) {
                self.reweigh(problem, device, *datum);
            }
        }
        if let Some(luf) = &mut self.luf {
            luf.give(device, self.inputs.of(task));
        }
        Some(task)
    }

    /// Moves half of the tasks of the longest list to the list of `thief`, from its
    /// tail, as far as the thief can run them.
    pub fn steal(&mut self, problem: &Problem, thief: usize) {
        let others = (0..self.count.len()).filter(|device| *device != thief);
        let Some(owner) = others.max_by_key(|device| (self.count[*device], usize::MAX - device))
        else {
            return;
        };
        let mut left_out = Vec::new();
        let mut left = self.count[owner] / 2;
        while left > 0 {
            let Some(position) = self.order[owner].last() else {
                break;
            };
            let task = self.task_at[position];
            if problem.able(task, thief) {
                self.remove(owner, task);
                self.push(problem, thief, task, position);
                left -= 1;
            } else {
                left_out.push((position, self.order[owner].get(position)));
                self.order[owner].set(position, 0);
            }
        }
        for (position, key) in left_out {
            self.order[owner].set(position, key);
        }
    }

    pub fn finished(&mut self, problem: &Problem, finished: &Finished) {
        let device = finished.device;
        let inputs = &problem.tasks[finished.component].inputs;
        for datum in inputs {
            if self.holdings.release(device, *datum) {
                self.reweigh(problem, device, *datum);
            }
        }
        if let Some(luf) = &mut self.luf {
            luf.finish(device, self.inputs.of(finished.component));
        }
    }

    pub fn arrived(&mut self, problem: &Problem, device: usize, datum: usize) {
        if self.holdings.arrived(device, datum) {
            self.reweigh(problem, device, datum);
        }
        self.luf
            .iter_mut()
            .for_each(|luf| luf.arrived(device, datum));
    }

    pub fn evicted(&mut self, problem: &Problem, device: usize, datum: usize) {
        if self.holdings.evicted(device, datum) {
            self.reweigh(problem, device, datum);
        }
        self.luf
            .iter_mut()
            .for_each(|luf| luf.evicted(device, datum));
    }

    pub fn victim(&mut self, device: usize, evictable: &dyn Fn(usize) -> bool) -> Option<usize> {
        self.luf.as_mut()?.victim(device, evictable)
    }

    /// A device holds a datum now, or no longer: the tasks in its list that read it
    /// lack less, or more.
    fn reweigh(&mut self, problem: &Problem, device: usize, datum: usize) {
        let bytes = problem.data[datum].bytes;
        let held = self.holdings.holds(device, datum);
        for task in self.readers.of(datum).iter().map(|task| *task as usize) {
            if self.owner[task] == Some(device) {
                let absent = &mut self.absent[task];
                *absent = if held {
                    *absent - bytes
                } else {
                    *absent + bytes
                };
                self.order[device].set(self.position[task], key(*absent));
            }
        }
    }
}

/// The key of a task in its list: above 0, and greater for fewer bytes.
fn key(absent: u64) -> u64 {
    u64::MAX - absent
}

// Tasks that have their device and order before the run begins, Ready order and task
// stealing: what Algorithms 3 and 4 of Gonthier, Marchal and Thibault (IPDPS 2022) have
// in common. `partition` and `mhfp` make the orders.

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

    fn changed(&mut self, device: usize, lost: bool) {
        self.lost[device] = lost;
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

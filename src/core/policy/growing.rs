//! Any policy where tasks arrive while others run: it is made anew, of the tasks that no
//! device has, when some have arrived or were taken back.
//!
//! A policy decides about what it knows. So nothing is lost by forgetting what was decided:
//! what devices hold, and what is ready, is reported again.

use std::collections::{BTreeSet, HashMap};

use super::{
    Datum, DeviceModel, Finished, Links, NamedPolicy, Policy, PolicyOptions, Prefetch, Problem,
    Task, WINDOW,
};
use crate::time::Nanos;

/// A policy for a graph that grows. Its tasks and data are numbered as they arrive.
pub struct Growing {
    named: NamedPolicy,
    options: PolicyOptions,
    devices: Vec<DeviceModel>,
    links: Links,
    /// By number.
    tasks: Vec<Task>,
    /// By number: the bytes of a datum.
    bytes: Vec<u64>,
    /// The tasks that are ready and that no device has.
    ready: BTreeSet<usize>,
    /// By device: the data that its own memory has.
    present: Vec<BTreeSet<usize>>,
    /// By device: the tasks that it has.
    given: Vec<usize>,
    lost: Vec<bool>,
    made: Option<Made>,
}

/// A device that computes in host memory has so many tasks: one that it computes, and the
/// next one. It loads nothing ahead, and what it has another device cannot get any more.
const IN_HOST: usize = 2;

/// A policy, and what its numbers stand for.
struct Made {
    policy: Box<dyn Policy>,
    tasks: Vec<usize>,
    data: Vec<usize>,
    task_numbers: HashMap<usize, usize>,
    data_numbers: HashMap<usize, usize>,
}

impl Growing {
    /// Without a task.
    pub fn new(
        named: NamedPolicy,
        options: PolicyOptions,
        devices: Vec<DeviceModel>,
        links: Links,
    ) -> Self {
        Self {
            named,
            options,
            tasks: Vec::new(),
            bytes: Vec::new(),
            ready: BTreeSet::new(),
            present: vec![BTreeSet::new(); devices.len()],
            given: vec![0; devices.len()],
            lost: vec![false; devices.len()],
            devices,
            links,
            made: None,
        }
    }

    /// There is a datum more, with the next number.
    pub fn datum(&mut self, bytes: u64) {
        self.bytes.push(bytes);
    }

    /// There is a task more, with the next number. Its predecessors do not matter, as it is
    /// reported when it is ready.
    pub fn task(&mut self, task: Task) {
        self.tasks.push(task);
    }

    /// A task is not to run.
    pub fn revoke(&mut self, task: usize) {
        if self.ready.remove(&task) {
            self.made = None;
        }
    }

    /// All tasks and data are forgotten, but these data, which have the numbers from 0 on.
    pub fn keep(&mut self, data: &[usize]) {
        self.made = None;
        self.tasks.clear();
        self.ready.clear();
        self.bytes = data.iter().map(|datum| self.bytes[*datum]).collect();
        for present in &mut self.present {
            let there = |(_, datum): &(usize, &usize)| present.contains(datum);
            let kept = data.iter().enumerate().filter(there);
            *present = kept.map(|(number, _)| number).collect();
        }
    }

    /// The policy of what is known now.
    fn made(&mut self) -> Option<&mut Made> {
        if self.made.is_none() {
            self.made = self.make();
        }
        self.made.as_mut()
    }

    fn make(&self) -> Option<Made> {
        let tasks: Vec<usize> = self.ready.iter().copied().collect();
        let (mut data, mut data_numbers) = (Vec::new(), HashMap::new());
        let mut numbered = |datum: &usize| {
            *data_numbers.entry(*datum).or_insert_with(|| {
                data.push(*datum);
                data.len() - 1
            })
        };
        let of_task = |number: &usize| {
            let task = &self.tasks[*number];
            let mut map = |data: &[usize]| {
                let mut all: Vec<usize> = data.iter().map(&mut numbered).collect();
                all.sort_unstable();
                all
            };
            Task {
                level: 0,
                predecessors: Vec::new(),
                inputs: map(&task.inputs),
                outputs: map(&task.outputs),
                ..task.clone()
            }
        };
        let known: Vec<Task> = tasks.iter().map(of_task).collect();
        let bytes = |datum: &usize| Datum {
            bytes: self.bytes[*datum],
        };
        let problem = Problem {
            views: Default::default(),
            results: Default::default(),
            tasks: known,
            data: data.iter().map(bytes).collect(),
            devices: self.devices.clone(),
            links: self.links.clone(),
        };
        let mut policy = self.named.policy(problem, &self.options).ok()?;
        policy.begin();
        for (device, _) in self.lost.iter().enumerate().filter(|(_, lost)| **lost) {
            policy.lost(device);
        }
        for (device, present) in self.present.iter().enumerate() {
            for (number, datum) in data.iter().enumerate() {
                if present.contains(datum) {
                    policy.arrived(device, number);
                }
            }
        }
        let task_numbers = tasks.iter().enumerate();
        let task_numbers = task_numbers.map(|(number, task)| (*task, number)).collect();
        for number in 0..tasks.len() {
            policy.ready(number, 0);
        }
        Some(Made {
            policy,
            tasks,
            data,
            task_numbers,
            data_numbers,
        })
    }
}

impl Policy for Growing {
    fn name(&self) -> &'static str {
        self.named.base_name()
    }

    fn may_run(&self, component: usize, device: usize) -> bool {
        let task = self.tasks.get(component);
        task.is_some_and(|task| task.seconds[device].is_some())
    }

    fn window(&self) -> Option<usize> {
        Some(self.options.window.unwrap_or(WINDOW))
    }

    fn begin(&mut self) {
        self.made = None;
        self.ready.clear();
        self.given.fill(0);
    }

    fn ready(&mut self, component: usize, _now: Nanos) {
        self.ready.insert(component);
        self.made = None;
    }

    fn next(&mut self, device: usize, now: Nanos) -> Option<usize> {
        let is_full = self.devices[device].memory.is_none() && self.given[device] == IN_HOST;
        if is_full || self.ready.is_empty() {
            return None;
        }
        let made = self.made()?;
        let task = made.policy.next(device, now)?;
        let task = made.tasks[task];
        self.ready.remove(&task);
        self.given[device] += 1;
        Some(task)
    }

    fn finished(&mut self, finished: &Finished) {
        self.given[finished.device] -= 1;
        let Some(made) = &mut self.made else { return };
        if let Some(number) = made.task_numbers.get(&finished.component) {
            made.policy.finished(&Finished {
                component: *number,
                ..*finished
            });
        }
    }

    fn changed(&mut self, device: usize, lost: bool) {
        self.lost[device] = lost;
        self.present[device].clear();
        self.begin();
    }

    fn prefetch(&mut self, device: usize) -> Option<Prefetch> {
        let made = self.made.as_mut()?;
        let wanted = made.policy.prefetch(device)?;
        Some(Prefetch {
            component: made.tasks[wanted.component],
            datum: made.data[wanted.datum],
        })
    }

    fn arrived(&mut self, device: usize, datum: usize) {
        self.present[device].insert(datum);
        if let Some(made) = &mut self.made
            && let Some(number) = made.data_numbers.get(&datum)
        {
            made.policy.arrived(device, *number);
        }
    }

    fn evicted(&mut self, device: usize, datum: usize) {
        self.present[device].remove(&datum);
        if let Some(made) = &mut self.made
            && let Some(number) = made.data_numbers.get(&datum)
        {
            made.policy.evicted(device, *number);
        }
    }

    /// What no waiting task reads or writes leaves first, the oldest of it.
    fn victim(&mut self, device: usize, evictable: &dyn Fn(usize) -> bool) -> Option<usize> {
        let made = self.made.as_mut();
        let known = |datum: usize| {
            let known = made.as_ref().map(|made| &made.data_numbers);
            known.is_some_and(|known| known.contains_key(&datum))
        };
        let mut present = self.present[device].iter().copied();
        let unknown = present.find(|datum| !known(*datum) && evictable(*datum));
        if unknown.is_some() {
            return unknown;
        }
        let made = made?;
        let data = &made.data;
        let is_evictable = |number: usize| evictable(data[number]);
        let number = made.policy.victim(device, &is_evictable)?;
        Some(data[number])
    }
}

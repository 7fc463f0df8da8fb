//! DMDAR: a task goes to the device where it is expected to be completed first, and
//! each device takes the task of its list that lacks the fewest bytes (Gonthier,
//! Marchal and Thibault, IPDPS 2022, Algorithms 1 and 2; StarPU's `dmda` and `dmdar`,
//! Augonnet et al., ICPADS 2010).

use std::collections::VecDeque;

use super::device_lists::{DeviceLists, ListOptions};
use super::{Eviction, Finished, Policy, Prefetch, Problem};
use crate::time::Nanos;

/// The policy. A task gets its device when it becomes ready, and keeps it.
///
/// The expected completion time on a device is the time at which the device is
/// available, as StarPU estimates it, plus the copies of the inputs that are not there,
/// plus the seconds of the task. Every input of a task that was allocated to a device
/// counts as there (InMem of Algorithm 1), although it may arrive late or be evicted.
///
/// An input that was not there is requested (line 8): the device loads it, in the order of
/// the requests, while it has nothing else to load, and in room that is free or has data
/// that no task needs any more.
pub struct Dmdar {
    problem: Problem,
    options: ListOptions,
    lists: DeviceLists,
    /// By device and datum: InMem.
    in_memory: Vec<Vec<bool>>,
    /// By device: when its current work began, and the seconds of copies and tasks
    /// that it still has.
    start: Vec<f64>,
    length: Vec<f64>,
    /// By task: its part of `length`.
    charge: Vec<f64>,
    lost: Vec<bool>,
    /// By device: the data that tasks requested when they were allocated to it.
    requests: Vec<VecDeque<Prefetch>>,
    /// Tasks that became ready: the position of the next one.
    count: usize,
}

impl Dmdar {
    pub fn new(problem: Problem, options: ListOptions) -> Self {
        let devices = problem.devices.len();
        Self {
            options,
            lists: DeviceLists::new(&problem, options.eviction),
            in_memory: vec![vec![false; problem.data.len()]; devices],
            start: vec![0.0; devices],
            length: vec![0.0; devices],
            charge: vec![0.0; problem.tasks.len()],
            lost: vec![false; devices],
            requests: vec![VecDeque::new(); devices],
            count: 0,
            problem,
        }
    }

    /// Seconds of copies and of the task on a device; `None` if it cannot run there.
    fn seconds(&self, task: usize, device: usize) -> Option<f64> {
        if self.lost[device] {
            return None;
        }
        let task = &self.problem.tasks[task];
        let seconds = task.seconds[device]?;
        let absent = task.inputs.iter();
        let absent = absent.filter(|datum| !self.in_memory[device][**datum]);
        // Copies follow each other, as in equation 1.
        let copies = absent.map(|datum| {
            let bytes = self.problem.data[*datum].bytes;
            self.problem.devices[device].transfer(bytes)
        });
        Some(copies.sum::<f64>() + seconds)
    }

    fn forget_allocations(&mut self) {
        self.start.fill(0.0);
        self.length.fill(0.0);
        self.requests.iter_mut().for_each(VecDeque::clear);
        self.count = 0;
    }
}

impl Policy for Dmdar {
    fn name(&self) -> &'static str {
        match self.options.eviction {
            Eviction::Lru => "dmdar",
            Eviction::Luf => "dmdar+luf",
        }
    }

    fn may_run(&self, component: usize, device: usize) -> bool {
        self.problem.able(component, device)
    }

    fn window(&self) -> Option<usize> {
        Some(self.options.window)
    }

    fn begin(&mut self) {
        self.lists.clear();
        self.in_memory.iter_mut().for_each(|data| data.fill(false));
        self.forget_allocations();
    }

    fn ready(&mut self, component: usize, now: Nanos) {
        let now = now as f64 / 1e9;
        let expected = (0..self.lost.len()).filter_map(|device| {
            let seconds = self.seconds(component, device)?;
            let available = self.start[device].max(now) + self.length[device];
            Some((device, seconds, available + seconds))
        });
        let Some((device, seconds, _)) = expected.min_by(|one, other| one.2.total_cmp(&other.2))
        else {
            return;
        };
        self.start[device] = self.start[device].max(now);
        self.length[device] += seconds;
        self.charge[component] = seconds;
        for datum in &self.problem.tasks[component].inputs {
            if !std::mem::replace(&mut self.in_memory[device][*datum], true) {
                self.requests[device].push_back(Prefetch {
                    component,
                    datum: *datum,
                });
            }
        }
        self.lists
            .push(&self.problem, device, component, self.count);
        self.count += 1;
    }

    fn next(&mut self, device: usize, _now: Nanos) -> Option<usize> {
        self.lists.pop(&self.problem, device)
    }

    fn prefetch(&mut self, device: usize) -> Option<Prefetch> {
        loop {
            let request = self.requests[device].pop_front()?;
            if !self.lists.holdings.holds(device, request.datum) {
                return Some(request);
            }
        }
    }

    fn finished(&mut self, finished: &Finished) {
        self.lists.finished(&self.problem, finished);
        let device = finished.device;
        self.start[device] = finished.ended as f64 / 1e9;
        self.length[device] = (self.length[device] - self.charge[finished.component]).max(0.0);
    }

    fn changed(&mut self, device: usize, lost: bool) {
        self.lost[device] = lost;
        self.lists.lose(device);
        for (device, data) in self.in_memory.iter_mut().enumerate() {
            let holds = |datum| self.lists.holdings.holds(device, datum);
            (0..data.len()).for_each(|datum| data[datum] = holds(datum));
        }
        self.forget_allocations();
    }

    fn arrived(&mut self, device: usize, datum: usize) {
        self.in_memory[device][datum] = true;
        self.lists.arrived(&self.problem, device, datum);
    }

    fn evicted(&mut self, device: usize, datum: usize) {
        self.in_memory[device][datum] = false;
        self.lists.evicted(&self.problem, device, datum);
    }

    fn victim(&mut self, device: usize, evictable: &dyn Fn(usize) -> bool) -> Option<usize> {
        self.lists.victim(device, evictable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::fixtures::{gpus, product};

    #[test]
    fn a_task_requests_what_its_device_lacks_and_nobody_requested() {
        let problem = product(3, gpus(1, 4));
        let mut policy = Dmdar::new(problem, ListOptions::default());
        policy.begin();
        (0..4).for_each(|task| policy.ready(task, 0));
        // The device has datum 3 by then, so that its request is void.
        policy.arrived(0, 3);
        let requests = std::iter::from_fn(|| policy.prefetch(0));
        let requests: Vec<_> = requests.map(|r| (r.component, r.datum)).collect();
        assert_eq!(requests, [(0, 0), (1, 4), (2, 5), (3, 1)]);
    }
}

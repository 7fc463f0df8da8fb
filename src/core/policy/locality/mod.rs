//! Locality: tasks that share data in small memories, chosen by expected time.
//!
//! It follows DARTS (Gonthier, Marchal and Thibault, IPDPS 2022): a device that needs a
//! task first gets those that it has planned, and then loads what makes the most work
//! possible. The differences:
//!
//! * **Time instead of counts.** A load costs its seconds: from the host, whose bus all
//!   devices share, or from a device that has the datum. It gains the seconds of the tasks
//!   that it makes possible. [`shares`] divides the one by the other. Data and tasks may
//!   therefore be of unlike sizes, and devices share what one of them has loaded.
//! * **One load ahead.** A load also gains a part of the tasks that lack one datum more.
//!   Where tasks have three inputs, most lack two.
//! * **Eviction by the next use.** Of the data that LUF (Algorithm 6) holds equal, those
//!   leave first that another device can give back. Of the oldest of these, the one leaves
//!   whose cheapest reader costs most, so that it is used last.
//! * **Planned tasks run by their bottom-level rank**, the most urgent first, and so do those
//!   of a window whose data are there.
//! * **Loads ahead of their use take an eighth of the memory**, not more: data that wait
//!   for their task take the room of data that are used again. Results of the tasks that a
//!   device has take as much.
//! * **A slow device takes no task before the end of which the others would have ended all
//!   that are ready**, as in HEFT: others may wait for it. Of several it takes the least urgent.
//!   What devices load and store counts, on both sides.

mod shares;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::lacks::Lacking;
use super::luf::Luf;
use super::ready_queue::Pool;
use super::{Finished, Policy, Problem};
use crate::time::Nanos;
use shares::{CANDIDATES, Shares};

/// So many tasks are planned at once. The others that a load frees follow when the device
/// asks for the next task, so that no single answer takes long.
const MOST_PLANS: usize = 16;

/// A device that computes in host memory has so many tasks: one that it computes, and the
/// next one. It loads nothing ahead, and what it has another device cannot get any more.
const IN_HOST: usize = 2;

/// Of so many random tasks, a device that computes in host memory gets the one of which
/// the other devices hold least.
const SAMPLES: usize = 8;

/// Loads for tasks that have not ended take this part of a device's memory, and so do results.
const AHEAD: u64 = 8;

/// The policy.
pub struct Locality {
    problem: Problem,
    /// How many tasks a device has at once.
    window: usize,
    random: fastrand::Rng,
    status: Vec<Status>,
    /// The available tasks.
    pool: Pool,
    shares: Shares,
    luf: Luf,
    /// By device.
    planned: Vec<BTreeSet<Plan>>,
    plans: u64,
    /// By task: the bytes that its device had to load for it. By device: those for tasks
    /// that it has.
    loads: Vec<u64>,
    ahead: Vec<u64>,
    /// By device: the bytes that tasks which it has make.
    made: Vec<u64>,
    /// By task and device: the seconds of a ready task, while others are loaded and stored.
    paced: Vec<f64>,
    /// By device: the paced seconds of the tasks that it has or plans.
    queued: Vec<f64>,
    /// By device: the tasks that it has.
    given: Vec<usize>,
    /// By device: the paced seconds of the tasks that are ready, or that a device has, and that it
    /// can run.
    ready: Vec<f64>,
    lost: Vec<bool>,
    /// Whether a task waits for another one.
    is_ordered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Waiting,
    Available,
    Planned {
        device: usize,
        plan: Plan,
    },
    /// In a device's task buffer.
    Given,
    Ended,
}

/// A planned task. The greatest rank comes first, and of equals the first planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Plan {
    rank: Reverse<u64>,
    number: u64,
    task: usize,
}

impl Locality {
    /// A device has `window` tasks at once, at least 1. `seed` is that of random choices,
    /// for devices that need no load for a task.
    pub fn new(problem: Problem, window: usize, seed: u64) -> Self {
        let devices = problem.devices.len();
        Self {
            window,
            random: fastrand::Rng::with_seed(seed),
            status: vec![Status::Waiting; problem.tasks.len()],
            pool: Pool::new(&problem),
            shares: Shares::new(&problem),
            luf: Luf::new(&problem),
            planned: vec![BTreeSet::new(); devices],
            plans: 0,
            loads: vec![0; problem.tasks.len()],
            ahead: vec![0; devices],
            made: vec![0; devices],
            paced: vec![0.0; problem.tasks.len() * devices],
            queued: vec![0.0; devices],
            given: vec![0; devices],
            ready: vec![0.0; devices],
            lost: vec![false; devices],
            is_ordered: problem
                .tasks
                .iter()
                .any(|task| !task.predecessors.is_empty()),
            problem,
        }
    }

    /// Forgets all tasks that have not ended.
    fn reset(&mut self) {
        self.pool.clear();
        self.planned.iter_mut().for_each(BTreeSet::clear);
        self.ahead.fill(0);
        self.made.fill(0);
        self.queued.fill(0.0);
        self.given.fill(0);
        for status in &mut self.status {
            if *status != Status::Ended {
                *status = Status::Waiting;
            }
        }
        let ended = |task: usize| self.status[task] == Status::Ended;
        self.shares.reset(&self.problem, &self.lost, ended);
        self.ready.fill(0.0);
        for task in 0..self.status.len() {
            self.tell_later_readers(task);
        }
        self.tell_scarce();
    }

    /// Adds a task's seconds to those of ready tasks, or takes them away.
    fn count_ready(&mut self, task: usize, sign: f64) {
        for device in 0..self.ready.len() {
            self.ready[device] += sign * self.seconds(task, device);
        }
    }

    fn make_available(&mut self, task: usize) {
        if self.status[task] == Status::Waiting {
            for device in 0..self.ready.len() {
                // Readers of a datum share its load.
                let loads = self.shares.load_seconds(task, device, true);
                self.paced[task * self.ready.len() + device] = self.pace(task, device, loads);
            }
            self.count_ready(task, 1.0);
        }
        self.status[task] = Status::Available;
        self.pool.add(task);
        self.shares.add(task);
        self.tell_later_readers(task);
    }

    /// Tells LUF which inputs of a task have unprocessed readers.
    fn tell_later_readers(&mut self, task: usize) {
        for datum in self
            .shares
            .lacks
            .inputs
            .of(task)
            .iter()
            .map(|d| *d as usize)
        {
            let later = self.shares.lacks.unprocessed[datum] > 0;
            self.luf.read_later(datum, later);
        }
    }

    /// Tells LUF which data other devices have now, or no longer.
    fn tell_scarce(&mut self) {
        while let Some(datum) = self.shares.pop_moved() {
            for device in 0..self.planned.len() {
                let scarce = self.shares.is_scarce(device, datum);
                self.luf.set_scarce(device, datum, scarce);
            }
        }
    }

    /// Plans an available task, whose inputs the device holds from now on.
    fn plan(&mut self, task: usize, device: usize) {
        self.pool.remove(task);
        self.shares.take(task);
        self.tell_later_readers(task);
        self.enlist(task, device);
    }

    fn enlist(&mut self, task: usize, device: usize) {
        let holdings = &self.shares.lacks.holdings;
        self.loads[task] = holdings.absent_bytes(&self.problem, task, device);
        self.shares.reserve(task, device);
        self.plans += 1;
        let plan = Plan {
            // Ranks are not negative, so they and their bits have one order.
            rank: Reverse(self.problem.tasks[task].rank.to_bits()),
            number: self.plans,
            task,
        };
        self.status[task] = Status::Planned { device, plan };
        self.planned[device].insert(plan);
        self.luf.plan(device, self.shares.lacks.inputs.of(task));
        self.queued[device] += self.seconds(task, device);
    }

    fn seconds(&self, task: usize, device: usize) -> f64 {
        self.paced[task * self.ready.len() + device]
    }

    /// The seconds from one such task to the next: of its kernels, its loads, or of storing what it
    /// does not change in place, whichever are more.
    fn pace(&self, task: usize, device: usize, loads: f64) -> f64 {
        let kernels = self.problem.tasks[task].seconds[device].unwrap_or(0.0);
        let stores = (self.makes(task)).map(|datum| self.shares.store_seconds(datum, device));
        kernels.max(loads).max(stores.sum())
    }

    /// What a task writes and does not change in place.
    fn makes(&self, task: usize) -> impl Iterator<Item = usize> + '_ {
        let of = &self.problem.tasks[task];
        let made = of.outputs.iter().copied();
        made.filter(|datum| of.inputs.binary_search(datum).is_err())
    }

    fn made_bytes(&self, task: usize) -> u64 {
        (self.makes(task))
            .map(|datum| self.problem.data[datum].bytes)
            .sum()
    }

    /// Whether so many bytes take more than their part of a device's memory.
    fn is_much(&self, bytes: u64, device: usize) -> bool {
        let memory = self.problem.devices[device].memory;
        memory.is_some_and(|memory| bytes > memory / AHEAD)
    }

    /// A task is no longer planned. Its inputs remain reserved.
    fn withdraw(&mut self, plan: Plan, device: usize) {
        self.planned[device].remove(&plan);
        self.luf
            .withdraw(device, self.shares.lacks.inputs.of(plan.task));
        self.queued[device] -= self.seconds(plan.task, device);
    }

    /// The first planned task of a device enters its task buffer.
    fn pop(&mut self, device: usize) -> Option<usize> {
        let plan = *self.planned[device].first()?;
        self.withdraw(plan, device);
        self.status[plan.task] = Status::Given;
        self.ahead[device] += self.loads[plan.task];
        self.made[device] += self.made_bytes(plan.task);
        self.given[device] += 1;
        self.queued[device] += self.seconds(plan.task, device);
        self.luf
            .give(device, self.shares.lacks.inputs.of(plan.task));
        Some(plan.task)
    }

    /// Plans available tasks that lack nothing on a device.
    fn plan_free(&mut self, device: usize) {
        for _ in 0..MOST_PLANS {
            let Some(task) = self.shares.lacks.pop_freed(device) else {
                break;
            };
            self.plan(task, device);
        }
    }

    /// Plans the cheapest task and what its loads make possible, unless the device had
    /// better wait.
    fn plan_loads(&mut self, device: usize) {
        if self.is_much(self.ahead[device], device) {
            return;
        }
        let cheapest = self.shares.cheapest(device);
        let task = cheapest.or_else(|| self.remote(device));
        match task {
            Some(task) if self.is_late(task, device) => return,
            Some(task) => self.plan(task, device),
            None => self.steal(device),
        }
        self.plan_free(device);
    }

    /// A random available task, with the most inputs that no device holds, and of such ones the
    /// least urgent.
    fn remote(&mut self, device: usize) -> Option<usize> {
        let mut samples = Vec::with_capacity(SAMPLES);
        for _ in 0..SAMPLES {
            samples.push(self.pool.random(device, &mut self.random)?);
        }
        let rank = |task: usize| self.problem.tasks[task].rank.to_bits();
        let key = |task: &usize| (self.shares.held_nowhere(*task), Reverse(rank(*task)));
        samples.into_iter().max_by_key(key)
    }

    /// Whether all tasks that are ready are expected to end before this device ends a task more,
    /// although a faster device can run it. The fastest one never waits, so that some
    /// device always goes on.
    fn is_late(&self, task: usize, device: usize) -> bool {
        let able = (0..self.lost.len()).filter(|other| !self.lost[*other]);
        let able = able.filter(|other| self.problem.able(task, *other));
        let loads = self.shares.load_seconds(task, device, false);
        let own = self.pace(task, device, loads);
        let holdings = &self.shares.lacks.holdings;
        // What one device's memory has, another one's gets, too: copies tell the host from them.
        let is_quicker = |other| match holdings.in_host(device) || holdings.in_host(other) {
            true => self.seconds(task, other) < own,
            false => {
                let seconds = &self.problem.tasks[task].seconds;
                seconds[other] < seconds[device]
            }
        };
        let is_faster = |other| is_quicker(other) && self.ready[other] < self.ready[device];
        // Each device does its part of the work in a second.
        let rate: f64 = able
            .clone()
            .map(|other| 1.0 / self.ready[other].max(own * 1e-3))
            .sum();
        able.clone().any(is_faster) && (self.queued[device] + own) * rate > 1.0
    }

    /// Plans half of the tasks of the device that has the most planned, the last ones,
    /// as far as the thief can run them and is not late.
    fn steal(&mut self, thief: usize) {
        let others = (0..self.planned.len()).filter(|device| *device != thief);
        let Some(owner) =
            others.max_by_key(|device| (self.planned[*device].len(), Reverse(*device)))
        else {
            return;
        };
        let half = self.planned[owner].len() / 2;
        let last = self.planned[owner].iter().rev();
        let able = last.filter(|plan| self.problem.able(plan.task, thief));
        let stolen: Vec<Plan> = able.take(half).copied().collect();
        for plan in stolen {
            if self.is_late(plan.task, thief) {
                break;
            }
            self.withdraw(plan, owner);
            self.shares.release(plan.task, owner);
            self.enlist(plan.task, thief);
        }
    }
}

impl Policy for Locality {
    fn name(&self) -> &'static str {
        "locality"
    }

    fn may_run(&self, component: usize, device: usize) -> bool {
        self.problem.able(component, device)
    }

    fn window(&self) -> Option<usize> {
        Some(self.window)
    }

    fn begins(&self, prepared: &[usize]) -> usize {
        // Nobody waits for independent tasks: they keep the order in which data were loaded.
        if !self.is_ordered {
            return 0;
        }
        let rank = |task: usize| self.problem.tasks[task].rank;
        let later = |one: &usize, other: &usize| {
            rank(prepared[*one])
                .total_cmp(&rank(prepared[*other]))
                .then(other.cmp(one))
        };
        (0..prepared.len()).max_by(later).unwrap_or(0)
    }

    fn begin(&mut self) {
        self.status.fill(Status::Waiting);
        self.shares.lacks.holdings.clear();
        self.luf.clear();
        self.reset();
    }

    fn ready(&mut self, component: usize, _now: Nanos) {
        self.make_available(component);
    }

    fn next(&mut self, device: usize, _now: Nanos) -> Option<usize> {
        let in_host = self.shares.lacks.holdings.in_host(device);
        if in_host && self.given[device] == IN_HOST || self.is_much(self.made[device], device) {
            return None;
        }
        self.plan_free(device);
        if self.planned[device].is_empty() {
            self.plan_loads(device);
        }
        self.tell_scarce();
        self.pop(device)
    }

    fn finished(&mut self, finished: &Finished) {
        let (task, device) = (finished.component, finished.device);
        self.status[task] = Status::Ended;
        self.queued[device] -= self.seconds(task, device);
        self.given[device] -= 1;
        self.ahead[device] -= self.loads[task];
        self.made[device] -= self.made_bytes(task);
        self.count_ready(task, -1.0);
        self.shares.release(task, device);
        self.luf.finish(device, self.shares.lacks.inputs.of(task));
        self.tell_scarce();
    }

    fn changed(&mut self, device: usize, lost: bool) {
        self.lost[device] = lost;
        self.shares.lacks.holdings.lose(device);
        self.luf.lose(device);
        self.reset();
    }

    fn arrived(&mut self, device: usize, datum: usize) {
        self.shares.arrived(device, datum);
        self.luf.arrived(device, datum);
        self.tell_scarce();
    }

    fn evicted(&mut self, device: usize, datum: usize) {
        self.shares.evicted(device, datum);
        self.luf.evicted(device, datum);
        // Planned tasks that need it are planned anew, as in line 8 of Algorithm 6.
        for index in 0..self.shares.lacks.readers.of(datum).len() {
            let task = self.shares.lacks.readers.of(datum)[index] as usize;
            match self.status[task] {
                Status::Planned { device: on, plan } if on == device => {
                    self.withdraw(plan, device);
                    self.make_available(task);
                    self.shares.release(task, device);
                }
                _ => {}
            }
        }
        self.tell_scarce();
    }

    fn victim(&mut self, device: usize, evictable: &dyn Fn(usize) -> bool) -> Option<usize> {
        let victims = self.luf.victims(device, evictable, CANDIDATES);
        match victims.len() {
            1 => victims.first().copied(),
            _ => self.shares.used_last(device, &victims),
        }
    }
}

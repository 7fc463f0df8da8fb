//! DARTS, Data-Aware Reactive Task Scheduling (Gonthier, Marchal and Thibault,
//! "Memory-aware scheduling of tasks sharing data on multiple GPUs with dynamic runtime
//! systems", IPDPS 2022, Algorithm 5).
//!
//! A device that asks for a task first gets those that it has planned. Without any, it
//! chooses the datum whose load frees the most tasks, and plans all of these. If no
//! single load frees a task, it gets a random one. The options are the paper's: LUF
//! (Algorithm 6), 3inputs (section V.E) and OPTI (section V.F).
//!
//! What differs from the paper:
//!
//! * A device holds a datum that is in its memory or that its planned or running tasks
//!   will load. The paper's dataNotInMem are the data that it does not hold.
//! * Tasks may become ready while others run. Only ready ones count, but every task
//!   that is not done counts where data are equally useful.
//! * A task can become free without a load: a device made its last input, or a random
//!   task loaded several data. Such tasks are planned before any further load.
//! * A device that finds no available task takes half of the tasks that another one has
//!   planned, as hMETIS+R does (section IV.B). The paper's rule gives all readers of
//!   one datum to one device.
//! * Data that tasks only write are no reason to load. A device that computes in host
//!   memory loads nothing, so it gets random tasks.

mod gains;

use std::collections::VecDeque;

use super::lacks::Lacking;
use super::luf::{Eviction, Luf};
use super::ready_queue::Pool;
use super::{Finished, Policy, Problem, WINDOW};
use crate::time::Nanos;
use gains::Gains;

/// So many tasks are planned at once. The others that a load frees follow when the device
/// asks for the next task, so that no single answer takes long.
const MOST_PLANS: usize = 100;

/// The variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DartsOptions {
    /// How many tasks a device has at once, the paper's task buffer; at least 1.
    pub window: usize,
    /// LUF also withdraws the planned tasks that need what left the memory.
    pub eviction: Eviction,
    /// Where no single load frees a task, a pair of loads is chosen that may free
    /// many: "3inputs".
    pub three_inputs: bool,
    /// Any datum that frees a task will do: "OPTI". The paper saves time by it. Here
    /// the best datum takes no longer to find, so it serves only to compare.
    pub opti: bool,
    /// Of random choices.
    pub seed: u64,
}

impl Default for DartsOptions {
    fn default() -> Self {
        Self {
            window: WINDOW,
            eviction: Eviction::Luf,
            three_inputs: false,
            opti: false,
            seed: 0,
        }
    }
}

/// The policy.
pub struct Darts {
    problem: Problem,
    options: DartsOptions,
    random: fastrand::Rng,
    status: Vec<Status>,
    /// The available tasks.
    pool: Pool,
    gains: Gains,
    luf: Option<Luf>,
    /// By device: tasks in the order of planning, of which some are no longer planned,
    /// and how many are.
    planned: Vec<VecDeque<Plan>>,
    count: Vec<usize>,
    plans: usize,
    lost: Vec<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Waiting,
    Available,
    Planned(Plan),
    /// In a device's task buffer.
    Given,
    Ended,
}

/// A task is planned for a device. It may be so several times, so plans have numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    task: usize,
    device: usize,
    number: usize,
}

impl Darts {
    pub fn new(problem: Problem, options: DartsOptions) -> Self {
        let devices = problem.devices.len();
        Self {
            options,
            random: fastrand::Rng::with_seed(options.seed),
            status: vec![Status::Waiting; problem.tasks.len()],
            pool: Pool::new(&problem),
            gains: Gains::new(&problem, options.opti, options.three_inputs),
            luf: (options.eviction == Eviction::Luf).then(|| Luf::new(&problem)),
            planned: vec![VecDeque::new(); devices],
            count: vec![0; devices],
            plans: 0,
            lost: vec![false; devices],
            problem,
        }
    }

    /// Forgets all tasks that have not ended.
    fn reset(&mut self) {
        self.pool.clear();
        self.planned.iter_mut().for_each(VecDeque::clear);
        self.count.fill(0);
        for status in &mut self.status {
            if *status != Status::Ended {
                *status = Status::Waiting;
            }
        }
        let ended = |task: usize| self.status[task] == Status::Ended;
        self.gains.reset(&self.problem, &self.lost, ended);
        for task in 0..self.status.len() {
            self.tell_later_readers(task);
        }
    }

    fn make_available(&mut self, task: usize) {
        self.status[task] = Status::Available;
        self.pool.add(task);
        self.gains.add(task);
        self.tell_later_readers(task);
    }

    /// Tells LUF which inputs of a task have unprocessed readers.
    fn tell_later_readers(&mut self, task: usize) {
        if let Some(luf) = &mut self.luf {
            for datum in self.gains.lacks.inputs.of(task).iter().map(|d| *d as usize) {
                luf.read_later(datum, self.gains.lacks.unprocessed[datum] > 0);
            }
        }
    }

    fn take(&mut self, task: usize) {
        self.pool.remove(task);
        self.gains.take(task);
        self.tell_later_readers(task);
    }

    /// Plans an available task, whose inputs the device holds from now on.
    fn plan(&mut self, task: usize, device: usize) {
        self.take(task);
        self.gains.reserve(task, device);
        self.enlist(task, device);
    }

    fn enlist(&mut self, task: usize, device: usize) {
        self.plans += 1;
        let number = self.plans;
        let plan = Plan {
            task,
            device,
            number,
        };
        self.status[task] = Status::Planned(plan);
        self.planned[device].push_back(plan);
        self.count[device] += 1;
        if let Some(luf) = &mut self.luf {
            luf.plan(device, self.gains.lacks.inputs.of(task));
        }
    }

    /// A task is no longer planned. Its inputs remain reserved.
    fn withdraw(&mut self, task: usize, device: usize) {
        self.count[device] -= 1;
        if let Some(luf) = &mut self.luf {
            luf.withdraw(device, self.gains.lacks.inputs.of(task));
        }
    }

    /// A task whose inputs are reserved enters the device's task buffer.
    fn give(&mut self, task: usize, device: usize) {
        self.status[task] = Status::Given;
        if let Some(luf) = &mut self.luf {
            luf.give(device, self.gains.lacks.inputs.of(task));
        }
    }

    /// The first planned task of a device.
    fn pop(&mut self, device: usize) -> Option<usize> {
        loop {
            let plan = self.planned[device].pop_front()?;
            if self.status[plan.task] == Status::Planned(plan) {
                self.withdraw(plan.task, device);
                self.give(plan.task, device);
                return Some(plan.task);
            }
        }
    }

    /// Plans available tasks that lack nothing on a device.
    fn plan_free(&mut self, device: usize) {
        for _ in 0..MOST_PLANS {
            let Some(task) = self.gains.lacks.pop_freed(device) else {
                break;
            };
            self.plan(task, device);
        }
    }

    /// Plans half of the tasks of the device that has the most planned, the last ones,
    /// as far as the thief can run them.
    fn steal(&mut self, thief: usize) {
        let others = (0..self.count.len()).filter(|device| *device != thief);
        let Some(owner) = others.max_by_key(|device| (self.count[*device], usize::MAX - device))
        else {
            return;
        };
        let planned = self.planned[owner].iter().rev();
        let planned = planned.filter(|plan| self.status[plan.task] == Status::Planned(**plan));
        let stolen = planned.map(|plan| plan.task);
        let stolen = stolen.filter(|task| self.problem.able(*task, thief));
        let stolen: Vec<usize> = stolen.take(self.count[owner] / 2).collect();
        for task in stolen.into_iter().rev() {
            self.withdraw(task, owner);
            self.gains.release(task, owner);
            self.gains.reserve(task, thief);
            self.enlist(task, thief);
        }
    }
}

impl Policy for Darts {
    fn name(&self) -> &'static str {
        let luf = self.options.eviction == Eviction::Luf;
        match (luf, self.options.opti, self.options.three_inputs) {
            (false, false, false) => "darts",
            (false, false, true) => "darts+3inputs",
            (false, true, false) => "darts+opti",
            (false, true, true) => "darts+opti+3inputs",
            (true, false, false) => "darts+luf",
            (true, false, true) => "darts+luf+3inputs",
            (true, true, false) => "darts+luf+opti",
            (true, true, true) => "darts+luf+opti+3inputs",
        }
    }

    fn may_run(&self, component: usize, device: usize) -> bool {
        self.problem.able(component, device)
    }

    fn window(&self) -> Option<usize> {
        Some(self.options.window)
    }

    fn begin(&mut self) {
        self.status.fill(Status::Waiting);
        self.gains.lacks.holdings.clear();
        self.luf.iter_mut().for_each(Luf::clear);
        self.reset();
    }

    fn ready(&mut self, component: usize, _now: Nanos) {
        self.make_available(component);
    }

    fn next(&mut self, device: usize, _now: Nanos) -> Option<usize> {
        self.plan_free(device);
        if self.count[device] == 0
            && let Some(task) = self.gains.best(device, &mut self.random)
        {
            self.plan(task, device);
            self.plan_free(device);
        }
        if let Some(task) = self.pop(device) {
            return Some(task);
        }
        let random = &mut self.random;
        let pair = self.gains.best_of_pairs(device, random);
        if let Some(task) = pair.or_else(|| self.pool.random(device, random)) {
            self.take(task);
            self.gains.reserve(task, device);
            self.give(task, device);
            return Some(task);
        }
        self.steal(device);
        self.pop(device)
    }

    fn finished(&mut self, finished: &Finished) {
        let (task, device) = (finished.component, finished.device);
        self.status[task] = Status::Ended;
        self.gains.release(task, device);
        if let Some(luf) = &mut self.luf {
            luf.finish(device, self.gains.lacks.inputs.of(task));
        }
    }

    fn changed(&mut self, device: usize, lost: bool) {
        self.lost[device] = lost;
        self.gains.lacks.holdings.lose(device);
        self.luf.iter_mut().for_each(|luf| luf.lose(device));
        self.reset();
    }

    fn arrived(&mut self, device: usize, datum: usize) {
        self.gains.arrived(device, datum);
        self.luf
            .iter_mut()
            .for_each(|luf| luf.arrived(device, datum));
    }

    fn evicted(&mut self, device: usize, datum: usize) {
        self.gains.evicted(device, datum);
        let Some(luf) = &mut self.luf else {
            return;
        };
        luf.evicted(device, datum);
        // Line 8 of Algorithm 6.
        for index in 0..self.gains.lacks.readers.of(datum).len() {
            let task = self.gains.lacks.readers.of(datum)[index] as usize;
            let planned =
                matches!(self.status[task], Status::Planned(plan) if plan.device == device);
            if planned {
                self.withdraw(task, device);
                self.make_available(task);
                self.gains.release(task, device);
            }
        }
    }

    fn victim(&mut self, device: usize, evictable: &dyn Fn(usize) -> bool) -> Option<usize> {
        self.luf.as_mut()?.victim(device, evictable)
    }
}

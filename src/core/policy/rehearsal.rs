//! What a run should take: a policy decides as in a run, on devices that are numbers.
//!
//! The costs are those that the engine will pay: kernels; copies over each link both ways, over
//! the bus that links share, and from device to device; launches and completions; the time that
//! the driver takes for each command, one after the other; memories that overflow; and the stores
//! of results. A device computes one component after the other, so that what overlaps there is
//! not counted, nor is what a policy loads ahead of its components.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::{Finished, Policy, Problem};
use crate::time::Nanos;

/// What is nowhere.
const NOWHERE: Nanos = Nanos::MAX;

/// Seconds of a run by a policy. A device with memory of its own has `depth` components at once
/// that have begun. `None` if the policy cannot run it: a device's memory is too small, or it
/// gives no device what is left.
pub fn rehearse(policy: &mut dyn Policy, problem: &Problem, depth: usize) -> Option<f64> {
    let mut rehearsal = Rehearsal::new(problem, depth);
    policy.begin();
    for (task, waits) in rehearsal.waits.iter().enumerate() {
        if *waits == 0 {
            policy.ready(task, 0);
        }
    }
    while rehearsal.left > 0 {
        rehearsal.give(policy);
        let Reverse((ended, task, device)) = rehearsal.running.pop()?;
        rehearsal.now = rehearsal.now.max(ended);
        rehearsal.end(policy, task, device);
    }
    Some(rehearsal.last as f64 / 1e9)
}

struct Rehearsal<'a> {
    problem: &'a Problem,
    depth: usize,
    /// By task: predecessors that have not ended, and successors.
    waits: Vec<usize>,
    successors: Vec<Vec<usize>>,
    left: usize,
    devices: Vec<Device>,
    /// By datum: since when it is in host memory, how many tasks have still to write it, and
    /// whether it is among the results.
    host: Vec<Nanos>,
    writers: Vec<usize>,
    wanted: Vec<bool>,
    /// When a task's end is known, the task, and its device.
    running: BinaryHeap<Reverse<(Nanos, usize, usize)>>,
    /// Until when the bus is busy, and the driver; and the end of the run so far.
    bus: Nanos,
    now: Nanos,
    last: Nanos,
    /// Counts uses.
    clock: u64,
}

/// A device in the run.
#[derive(Default)]
struct Device {
    /// Bytes that are free in its own memory; `None` where it computes in the host's.
    room: Option<u64>,
    /// By datum: since when it is in its own memory, tasks that need it there, and the last use.
    has: Vec<Nanos>,
    pins: Vec<u32>,
    used: Vec<u64>,
    /// Tasks that wait for room, and those whose data are on their way, with their arrival.
    waiting: VecDeque<usize>,
    prepared: Vec<(usize, Nanos)>,
    begun: usize,
    given: usize,
    /// Until when it computes, and its link and its ways from other devices are busy.
    busy: Nanos,
    up: Nanos,
    down: Nanos,
    across: Nanos,
}

fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9) as Nanos
}

impl<'a> Rehearsal<'a> {
    fn new(problem: &'a Problem, depth: usize) -> Self {
        let (tasks, data) = (&problem.tasks, problem.data.len());
        let mut successors = vec![Vec::new(); tasks.len()];
        let (mut writers, mut made, mut wanted) =
            (vec![0; data], vec![false; data], vec![false; data]);
        for (number, task) in tasks.iter().enumerate() {
            task.predecessors
                .iter()
                .for_each(|p| successors[*p].push(number));
            for datum in &task.outputs {
                writers[*datum] += 1;
                made[*datum] |= task.inputs.binary_search(datum).is_err();
            }
        }
        (problem.results.iter()).for_each(|datum| wanted[*datum] = true);
        let devices = problem.devices.iter().map(|device| {
            let own = if device.memory.is_some() { data } else { 0 };
            Device {
                room: device.memory,
                has: vec![NOWHERE; own],
                pins: vec![0; own],
                used: vec![0; own],
                ..Device::default()
            }
        });
        Self {
            problem,
            depth,
            waits: tasks.iter().map(|task| task.predecessors.len()).collect(),
            successors,
            left: tasks.len(),
            devices: devices.collect(),
            host: made
                .iter()
                .map(|made| if *made { NOWHERE } else { 0 })
                .collect(),
            wanted,
            writers,
            running: BinaryHeap::new(),
            bus: 0,
            now: 0,
            last: 0,
            clock: 0,
        }
    }

    /// Gives tasks to devices, the one with the fewest first, and begins what can begin.
    fn give(&mut self, policy: &mut dyn Policy) {
        loop {
            let window = policy.window().unwrap_or(usize::MAX);
            let mut devices: Vec<usize> = (0..self.devices.len()).collect();
            devices.retain(|device| self.devices[*device].given < window);
            devices.sort_by_key(|device| self.devices[*device].given);
            let mut offers = devices.into_iter();
            let offer = offers.find_map(|device| Some((device, policy.next(device, self.now)?)));
            let Some((device, task)) = offer else {
                break;
            };
            self.devices[device].given += 1;
            self.devices[device].waiting.push_back(task);
            self.prepare(policy, device);
        }
        (0..self.devices.len()).for_each(|device| self.prepare(policy, device));
    }

    /// Loads the data of a device's tasks in order, as far as there is room, and begins those that
    /// are next.
    fn prepare(&mut self, policy: &mut dyn Policy, device: usize) {
        loop {
            self.begin(policy, device);
            let Some(task) = self.devices[device].waiting.front().copied() else {
                return;
            };
            let Some(arrived) = self.load(policy, device, task) else {
                return;
            };
            self.devices[device].waiting.pop_front();
            self.devices[device].prepared.push((task, arrived));
        }
    }

    fn begin(&mut self, policy: &mut dyn Policy, device: usize) {
        let costs = self.problem.devices[device].costs;
        let depth = match self.devices[device].room {
            Some(_) => self.depth,
            None => 2,
        };
        while self.devices[device].begun < depth && !self.devices[device].prepared.is_empty() {
            let of = &self.devices[device];
            let prepared: Vec<usize> = of.prepared.iter().map(|(task, _)| *task).collect();
            let place = policy.begins(&prepared).min(prepared.len() - 1);
            self.now += nanos(costs.enqueue);
            let of = &mut self.devices[device];
            let (task, arrived) = of.prepared.remove(place);
            let begins = of.busy.max(self.now).max(arrived);
            let seconds = self.problem.tasks[task].seconds[device].unwrap_or(f64::INFINITY);
            of.busy = begins + nanos(costs.launch + seconds);
            of.begun += 1;
            let known = of.busy + nanos(costs.completion);
            self.running.push(Reverse((known, task, device)));
        }
    }

    /// Loads the data of a task to a device. Says when they are there; `None` if there is no room.
    fn load(&mut self, policy: &mut dyn Policy, device: usize, task: usize) -> Option<Nanos> {
        let problem = self.problem;
        let task = &problem.tasks[task];
        if self.devices[device].room.is_none() {
            let inputs = task.inputs.iter();
            return inputs.map(|datum| self.in_host(*datum)).max().or(Some(0));
        }
        let absent: Vec<usize> = (task.data())
            .filter(|datum| self.devices[device].has[*datum] == NOWHERE)
            .collect();
        let needed: u64 = absent.iter().map(|datum| problem.data[*datum].bytes).sum();
        task.data()
            .for_each(|datum| self.devices[device].pins[datum] += 1);
        while self.devices[device].room < Some(needed) {
            let of = &self.devices[device];
            let evictable = |datum: usize| of.has[datum] != NOWHERE && of.pins[datum] == 0;
            let oldest = || {
                (0..of.has.len())
                    .filter(|d| evictable(*d))
                    .min_by_key(|d| of.used[*d])
            };
            let Some(victim) = policy.victim(device, &evictable).or_else(oldest) else {
                task.data()
                    .for_each(|datum| self.devices[device].pins[datum] -= 1);
                return None;
            };
            self.store(victim);
            self.drop_from(policy, device, victim);
        }
        let mut ready = 0;
        for datum in task.data() {
            self.clock += 1;
            self.devices[device].used[datum] = self.clock;
            if !absent.contains(&datum) {
                ready = ready.max(self.devices[device].has[datum]);
                continue;
            }
            let is_read = task.inputs.binary_search(&datum).is_ok();
            let arrived = if is_read {
                self.bring(device, datum)
            } else {
                0
            };
            let of = &mut self.devices[device];
            of.room = of.room.map(|room| room - problem.data[datum].bytes);
            of.has[datum] = arrived;
            ready = ready.max(arrived);
            if is_read {
                policy.arrived(device, datum);
            }
        }
        Some(ready)
    }

    /// When a datum is in host memory, with all that it is made of.
    fn in_host(&mut self, datum: usize) -> Nanos {
        let problem = self.problem;
        match problem.views.get(&datum) {
            Some(pieces) => pieces
                .iter()
                .map(|piece| self.store(*piece))
                .max()
                .unwrap_or(0),
            None => self.store(datum),
        }
    }

    /// Brings a datum to a device's memory, from the nearest place that has it. Of a view only
    /// what is not there is copied over the link, if a part of it is there.
    fn bring(&mut self, device: usize, datum: usize) -> Nanos {
        let (problem, bytes) = (self.problem, self.problem.data[datum].bytes);
        let Some(pieces) = problem.views.get(&datum) else {
            return self.copy_to(device, datum, bytes);
        };
        let is_here = |of: &Self, piece: usize| of.devices[device].has[piece] != NOWHERE;
        if !pieces.iter().any(|piece| is_here(self, *piece)) {
            let there = self.in_host(datum);
            return self.over_link(device, there, bytes);
        }
        let mut ready = 0;
        for piece in pieces {
            let arrived = match is_here(self, *piece) {
                true => {
                    self.now += nanos(problem.devices[device].costs.enqueue);
                    self.devices[device].has[*piece].max(self.now)
                }
                false => {
                    let there = self.store(*piece);
                    self.over_link(device, there, bytes / pieces.len() as u64)
                }
            };
            ready = ready.max(arrived);
        }
        ready
    }

    /// Copies a datum to a device's memory, from another device or from the host.
    fn copy_to(&mut self, device: usize, datum: usize, bytes: u64) -> Nanos {
        let problem = self.problem;
        let costs = problem.devices[device].costs;
        let holders = (0..self.devices.len()).filter(|other| {
            let of = &self.devices[*other];
            *other != device && of.room.is_some() && of.has[datum] != NOWHERE
        });
        let direct = holders.filter_map(|other| Some((problem.links.peer(other, device)?, other)));
        let direct = direct.max_by(|one, other| one.0.total_cmp(&other.0));
        if let Some((rate, from)) = direct {
            self.now += nanos(costs.enqueue);
            let begins = self.now.max(self.devices[from].has[datum]);
            let begins = begins.max(self.devices[device].across);
            let ended = begins + nanos(costs.latency + bytes as f64 / rate);
            self.devices[device].across = ended;
            return ended;
        }
        let there = self.store(datum);
        self.over_link(device, there, bytes)
    }

    /// Copies what is in host memory from then on.
    fn over_link(&mut self, device: usize, there: Nanos, bytes: u64) -> Nanos {
        let model = &self.problem.devices[device];
        self.now += nanos(model.costs.enqueue);
        let begins = self.now.max(there).max(self.devices[device].up);
        let ended = begins + nanos(model.costs.latency + model.transfer(bytes));
        self.devices[device].up = self.over_bus(begins, bytes).max(ended);
        self.devices[device].up
    }

    /// Brings a datum to host memory, if it is not there or on its way. Says when it is there.
    fn store(&mut self, datum: usize) -> Nanos {
        if self.host[datum] != NOWHERE {
            return self.host[datum];
        }
        let mut devices = 0..self.devices.len();
        let holder = devices.find(|d| {
            self.devices[*d]
                .has
                .get(datum)
                .is_some_and(|h| *h != NOWHERE)
        });
        let Some(holder) = holder else {
            return 0;
        };
        let (model, bytes) = (
            &self.problem.devices[holder],
            self.problem.data[datum].bytes,
        );
        self.now += nanos(model.costs.enqueue);
        let begins = self
            .now
            .max(self.devices[holder].has[datum])
            .max(self.devices[holder].down);
        let ended = begins + nanos(model.costs.latency + model.transfer(bytes));
        let ended = self.over_bus(begins, bytes).max(ended);
        self.devices[holder].down = ended;
        self.host[datum] = ended;
        ended
    }

    /// When a copy is over as far as the bus is concerned.
    fn over_bus(&mut self, begins: Nanos, bytes: u64) -> Nanos {
        if let Some(rate) = self.problem.links.bus {
            self.bus = self.bus.max(begins) + nanos(bytes as f64 / rate);
        }
        self.bus
    }

    /// A datum leaves a device's memory.
    fn drop_from(&mut self, policy: &mut dyn Policy, device: usize, datum: usize) {
        let of = &mut self.devices[device];
        if of.has.get(datum).is_some_and(|has| *has != NOWHERE) {
            of.has[datum] = NOWHERE;
            of.room = of.room.map(|room| room + self.problem.data[datum].bytes);
            policy.evicted(device, datum);
        }
    }

    /// A device's task has ended.
    fn end(&mut self, policy: &mut dyn Policy, component: usize, device: usize) {
        let problem = self.problem;
        let task = &problem.tasks[component];
        let ended = self.now;
        let of = &mut self.devices[device];
        (of.begun, of.given) = (of.begun - 1, of.given - 1);
        let is_own = of.room.is_some();
        if is_own {
            task.data().for_each(|datum| of.pins[datum] -= 1);
        }
        for datum in task.outputs.iter().copied() {
            for other in (0..self.devices.len()).filter(|other| *other != device) {
                self.drop_from(policy, other, datum);
            }
            self.host[datum] = if is_own { NOWHERE } else { ended };
            if is_own {
                self.devices[device].has[datum] = ended;
                policy.arrived(device, datum);
            }
            self.writers[datum] -= 1;
            if self.writers[datum] == 0 && self.wanted[datum] {
                self.last = self.last.max(self.store(datum));
            }
        }
        self.last = self.last.max(ended);
        self.left -= 1;
        policy.finished(&Finished {
            component,
            device,
            dispatched: ended,
            ended,
            written: 0,
        });
        for successor in self.successors[component].clone() {
            self.waits[successor] -= 1;
            if self.waits[successor] == 0 {
                policy.ready(successor, self.now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Datum, DeviceModel, Eager, Task};
    use super::*;
    use crate::machine::DeviceKind;
    use crate::runtime::CommandCosts;

    /// Two tasks of 2 ms, each with a datum that it reads and one that it makes, on a device with
    /// room for so many of them, to and from which each takes 1 ms.
    fn two_tasks(room: u64, costs: CommandCosts) -> f64 {
        let task = |number: usize| Task {
            inputs: vec![number],
            outputs: vec![2 + number],
            seconds: vec![Some(2e-3)],
            ..Task::default()
        };
        let problem = Problem {
            tasks: (0..2).map(task).collect(),
            data: vec![Datum { bytes: 1_000_000 }; 4],
            results: vec![2, 3],
            devices: vec![DeviceModel {
                kind: DeviceKind::Gpu,
                bandwidth: Some(1e9),
                memory: Some(room * 1_000_000),
                costs,
            }],
            ..Problem::default()
        };
        let mut policy = Eager::with_window(problem.clone(), 2);
        rehearse(&mut policy, &problem, 2).unwrap_or(f64::INFINITY)
    }

    fn assert_near(seconds: f64, milliseconds: f64) {
        assert!((1e3 * seconds - milliseconds).abs() < 1e-6, "{seconds}");
    }

    #[test]
    fn loads_kernels_and_stores_overlap() {
        // Loaded until 1 and 2 ms, computed until 3 and 5, stored until 4 and 6.
        assert_near(two_tasks(4, CommandCosts::default()), 6.0);
    }

    #[test]
    fn commands_cost_what_they_are_said_to() {
        let costs = |enqueue, launch, latency, completion| CommandCosts {
            enqueue,
            launch,
            latency,
            completion,
        };
        assert_near(two_tasks(4, costs(0.0, 0.5e-3, 0.0, 0.0)), 7.0);
        // A load and a store cannot be hidden.
        assert_near(two_tasks(4, costs(0.0, 0.0, 0.25e-3, 0.0)), 6.5);
        // The store begins when the driver knows of the end.
        assert_near(two_tasks(4, costs(0.0, 0.0, 0.0, 0.5e-3)), 6.5);
        // Enqueued before the first kernel: a load. After the last one: a store.
        assert_near(two_tasks(4, costs(0.1e-3, 0.0, 0.0, 0.0)), 6.2);
    }

    #[test]
    fn a_full_memory_lets_nothing_overlap() {
        // The second task is loaded when the first one has ended, at 3 ms.
        assert_near(two_tasks(2, CommandCosts::default()), 7.0);
        assert_eq!(two_tasks(1, CommandCosts::default()), f64::INFINITY);
    }
}

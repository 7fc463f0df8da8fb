//! What a run should take: a policy decides as in a run, on devices that are numbers.
//!
//! The costs are those that the engine will pay: kernels, of which a GPU has several at once;
//! copies over each link both ways, over the bus that links share, and from device to device;
//! what these and kernels take of the host's memory; launches and completions; the time that the
//! driver takes for each command, one after the other; memories that overflow; and the stores of
//! results. Time passes as it does on simulated devices. What a policy loads ahead of its
//! components is not counted.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use super::{DeviceModel, Finished, Policy, Problem, Task};
use crate::runtime::sim::bandwidth_sharing::{Resource, Use};
use crate::runtime::sim::schedule::{Delay, Demand, Engine, JobId, Schedule};
use crate::time::Nanos;

/// Kernels of a graph of tasks that wait for each other that a GPU has at the same time. Beside
/// fewer, a GPU is idle while it factors a panel; more hold more data at once and gain nothing.
pub const SIDE_BY_SIDE: usize = 4;

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
        let (task, device) = rehearsal.wait()?;
        rehearsal.end(policy, task, device);
    }
    while let Some(at) = rehearsal.schedule.next_change() {
        rehearsal.until(at);
    }
    Some(rehearsal.now as f64 / 1e9)
}

/// What must have ended before data are somewhere.
type Arrival = Vec<JobId>;

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
    host: Vec<Option<Arrival>>,
    writers: Vec<usize>,
    wanted: Vec<bool>,
    schedule: Schedule,
    /// The bus, and the host's memory.
    bus: Option<Resource>,
    memory: Option<Resource>,
    /// The ways from one device's memory to another one's.
    ways: HashMap<(usize, usize), Way>,
    /// Kernels that compute, by their jobs: tasks, and their devices.
    computing: HashMap<JobId, (usize, usize)>,
    /// When a task's end is known, the task, and its device.
    running: BinaryHeap<Reverse<(Nanos, usize, usize)>>,
    /// Until when the driver is busy.
    now: Nanos,
    /// Counts uses.
    clock: u64,
}

/// A way of copies, which go one after the other.
#[derive(Clone, Copy)]
struct Way {
    engine: Engine,
    rate: Resource,
    last: JobId,
}

impl Way {
    fn new(bytes_a_second: f64, schedule: &mut Schedule) -> Self {
        Self {
            engine: schedule.engine(1),
            rate: schedule.fluid().resource(bytes_a_second),
            last: JobId::MAX,
        }
    }
}

/// A device in the run.
struct Device {
    number: usize,
    /// Bytes that are free in its own memory; `None` where it computes in the host's.
    room: Option<u64>,
    /// By datum: since when it is in its own memory, tasks that need it there, and the last use.
    has: Vec<Option<Arrival>>,
    pins: Vec<u32>,
    used: Vec<u64>,
    /// Tasks that wait for room, and those whose data are on their way, with their arrival.
    waiting: VecDeque<usize>,
    prepared: Vec<(usize, Arrival)>,
    begun: usize,
    given: usize,
    /// Its kernels, and each of its queues, the last one that was used first, with its last
    /// kernel.
    kernels: Engine,
    queues: Vec<(Resource, JobId)>,
    /// Its arithmetic and its memory: kernels that use less of them than others leave them room.
    compute: [Resource; 2],
    /// Its link's ways to its memory and back, and both together.
    link: Option<([Way; 2], Resource)>,
}

impl Device {
    fn new(
        model: &DeviceModel,
        data: usize,
        queues: usize,
        rates: [f64; 2],
        schedule: &mut Schedule,
    ) -> Self {
        let own = if model.memory.is_some() { data } else { 0 };
        let link = model.bandwidth.map(|both| {
            let rates = model.one_way.unwrap_or([both; 2]);
            let ways = rates.map(|rate| Way::new(rate, schedule));
            (ways, schedule.fluid().resource(2.0 * both))
        });
        Self {
            number: schedule.device(),
            room: model.memory,
            has: vec![None; own],
            pins: vec![0; own],
            used: vec![0; own],
            waiting: VecDeque::new(),
            prepared: Vec::new(),
            begun: 0,
            given: 0,
            kernels: schedule.engine(model.costs.kernels.clamp(1, queues as u32)),
            queues: (0..queues)
                .map(|_| (schedule.fluid().resource(1.0), JobId::MAX))
                .collect(),
            compute: rates.map(|most| schedule.fluid().resource(most)),
            link,
        }
    }
}

fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9) as Nanos
}

/// Operations and bytes a second of a task on a device.
fn rates(task: &Task, device: usize) -> [f64; 2] {
    let seconds = task.seconds[device].filter(|seconds| *seconds > 0.0);
    let rate = |amount: f64| seconds.map_or(0.0, |seconds| amount / seconds);
    [task.cost.flops, task.cost.bytes].map(rate)
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
        let mut schedule = Schedule::default();
        let waits: Vec<usize> = tasks.iter().map(|task| task.predecessors.len()).collect();
        let devices = problem.devices.iter().enumerate().map(|(device, model)| {
            let rates = tasks.iter().map(|task| rates(task, device));
            let rates = rates.fold([1.0_f64; 2], |[a, b], [c, d]| [a.max(c), b.max(d)]);
            let queues = match model.memory {
                Some(_) if waits.iter().any(|waits| *waits > 0) => SIDE_BY_SIDE,
                _ => 1,
            };
            Device::new(model, data, queues, rates, &mut schedule)
        });
        let devices = devices.collect();
        Self {
            problem,
            depth,
            waits,
            successors,
            left: tasks.len(),
            devices,
            host: made.iter().map(|made| (!made).then(Arrival::new)).collect(),
            wanted,
            writers,
            bus: (problem.links.bus).map(|rate| schedule.fluid().resource(rate)),
            memory: (problem.links.host).map(|rate| schedule.fluid().resource(rate)),
            ways: HashMap::new(),
            schedule,
            computing: HashMap::new(),
            running: BinaryHeap::new(),
            now: 0,
            clock: 0,
        }
    }

    /// Lets time pass, and notes the tasks that end.
    fn until(&mut self, at: Nanos) {
        self.now = self.now.max(at);
        self.schedule.advance(self.now);
        for ended in self.schedule.take_ended() {
            if let Some((task, device)) = self.computing.remove(&ended.job) {
                let known = nanos(self.problem.devices[device].costs.completion);
                (self.running).push(Reverse((ended.at + known, task, device)));
            }
        }
    }

    /// Waits until the end of a task is known; `None` if nothing runs.
    fn wait(&mut self) -> Option<(usize, usize)> {
        loop {
            let known = self.running.peek().map(|Reverse((at, ..))| *at);
            match self.schedule.next_change() {
                Some(next) if known.is_none_or(|known| next < known) => self.until(next),
                _ => break,
            }
        }
        let Reverse((known, task, device)) = self.running.pop()?;
        self.until(known);
        Some((task, device))
    }

    /// The driver enqueues a command of a device.
    fn enqueue(&mut self, device: usize) {
        self.until(self.now + nanos(self.problem.devices[device].costs.enqueue));
    }

    /// A copy to a device or from it.
    fn copy(
        &mut self,
        device: usize,
        engine: Engine,
        uses: impl Iterator<Item = Resource>,
        bytes: u64,
        after: &[JobId],
    ) -> JobId {
        let uses = uses.map(|rate| Use::of(rate, bytes as f64)).collect();
        let demand = Demand {
            latency: nanos(self.problem.devices[device].costs.latency),
            ..Demand::of(engine, uses)
        };
        (self.schedule).submit(self.devices[device].number, demand, after, false)
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
            let Some(arrival) = self.load(policy, device, task) else {
                return;
            };
            self.devices[device].waiting.pop_front();
            self.devices[device].prepared.push((task, arrival));
        }
    }

    fn begin(&mut self, policy: &mut dyn Policy, device: usize) {
        let depth = match self.devices[device].room {
            Some(_) => self.depth,
            None => 2,
        };
        while self.devices[device].begun < depth && !self.devices[device].prepared.is_empty() {
            let of = &self.devices[device];
            let prepared: Vec<usize> = of.prepared.iter().map(|(task, _)| *task).collect();
            let place = policy.begins(&prepared).min(prepared.len() - 1);
            self.enqueue(device);
            let of = &mut self.devices[device];
            let (task, mut after) = of.prepared.remove(place);
            of.begun += 1;
            let about = &self.problem.tasks[task];
            // What a device cannot run never ends.
            let Some(seconds) = about.seconds[device] else {
                continue;
            };
            of.queues.rotate_left(1);
            let (queue, last) = of.queues[0];
            after.push(last);
            let costs = self.problem.devices[device].costs;
            let mut uses = vec![Use::of(queue, seconds)];
            match of.room {
                Some(_) => uses.extend([
                    Use::of(of.compute[0], about.cost.flops),
                    Use::of(of.compute[1], about.cost.bytes),
                ]),
                None => uses.extend(self.memory.map(|memory| Use::of(memory, about.cost.bytes))),
            }
            let demand = Demand {
                gap: nanos(costs.launch),
                delay: of.link.map(|(ways, _)| Delay {
                    behind: ways[0].rate,
                    by: nanos(costs.behind_write),
                }),
                ..Demand::of(of.kernels, uses)
            };
            let job = (self.schedule).submit(of.number, demand, &after, false);
            of.queues[0].1 = job;
            self.computing.insert(job, (task, device));
        }
    }

    /// Loads the data of a task to a device. Says after what they are there; `None` if there is no
    /// room.
    fn load(&mut self, policy: &mut dyn Policy, device: usize, task: usize) -> Option<Arrival> {
        let problem = self.problem;
        let task = &problem.tasks[task];
        if self.devices[device].room.is_none() {
            let inputs = task.inputs.iter();
            return Some(inputs.flat_map(|datum| self.in_host(*datum)).collect());
        }
        let absent: Vec<usize> = (task.data())
            .filter(|datum| self.devices[device].has[*datum].is_none())
            .collect();
        let needed: u64 = absent.iter().map(|datum| problem.data[*datum].bytes).sum();
        task.data()
            .for_each(|datum| self.devices[device].pins[datum] += 1);
        while self.devices[device].room < Some(needed) {
            let of = &self.devices[device];
            let evictable = |datum: usize| of.has[datum].is_some() && of.pins[datum] == 0;
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
        let mut all = Arrival::new();
        for datum in task.data() {
            self.clock += 1;
            self.devices[device].used[datum] = self.clock;
            if let Some(arrival) = &self.devices[device].has[datum] {
                all.extend(arrival);
                continue;
            }
            let is_read = task.inputs.binary_search(&datum).is_ok();
            let arrival = match is_read {
                true => self.bring(device, datum),
                false => Arrival::new(),
            };
            all.extend(&arrival);
            let of = &mut self.devices[device];
            of.room = of.room.map(|room| room - problem.data[datum].bytes);
            of.has[datum] = Some(arrival);
            if is_read {
                policy.arrived(device, datum);
            }
        }
        Some(all)
    }

    /// After what a datum is in host memory, with all that it is made of.
    fn in_host(&mut self, datum: usize) -> Arrival {
        let problem = self.problem;
        match problem.views.get(&datum) {
            Some(pieces) => (pieces.iter())
                .flat_map(|piece| self.store(*piece))
                .collect(),
            None => self.store(datum),
        }
    }

    /// Brings a datum to a device's memory, from the nearest place that has it. Of a view only
    /// what is not there is copied over the link, if a part of it is there.
    fn bring(&mut self, device: usize, datum: usize) -> Arrival {
        let (problem, bytes) = (self.problem, self.problem.data[datum].bytes);
        let Some(pieces) = problem.views.get(&datum) else {
            return self.copy_to(device, datum, bytes);
        };
        let has_any = |of: &Device| pieces.iter().any(|piece| of.has[*piece].is_some());
        if !has_any(&self.devices[device]) {
            let there = self.in_host(datum);
            return self.over_link(device, 0, there, bytes);
        }
        let mut all = Arrival::new();
        for piece in pieces {
            match self.devices[device].has[*piece].clone() {
                Some(arrival) => {
                    self.enqueue(device);
                    all.extend(arrival);
                }
                None => {
                    let there = self.store(*piece);
                    let bytes = bytes / pieces.len() as u64;
                    all.extend(self.over_link(device, 0, there, bytes));
                }
            }
        }
        all
    }

    /// Copies a datum to a device's memory, from another device or from the host.
    fn copy_to(&mut self, device: usize, datum: usize, bytes: u64) -> Arrival {
        let problem = self.problem;
        let holders = (0..self.devices.len()).filter(|other| {
            let of = &self.devices[*other];
            *other != device && of.room.is_some() && of.has[datum].is_some()
        });
        let direct = holders.filter_map(|other| Some((problem.links.peer(other, device)?, other)));
        let direct = direct.max_by(|one, other| one.0.total_cmp(&other.0));
        let Some((rate, from)) = direct else {
            let there = self.store(datum);
            return self.over_link(device, 0, there, bytes);
        };
        self.enqueue(device);
        let schedule = &mut self.schedule;
        let way = (self.ways.entry((from, device))).or_insert_with(|| Way::new(rate, schedule));
        let Way { engine, rate, .. } = *way;
        let after = self.devices[from].has[datum].clone().unwrap_or_default();
        vec![self.copy(device, engine, [rate].into_iter(), bytes, &after)]
    }

    /// Copies what is in host memory after that to a device's (way 0), or back (way 1).
    fn over_link(&mut self, device: usize, way: usize, mut after: Arrival, bytes: u64) -> Arrival {
        let Some((ways, both)) = self.devices[device].link else {
            return after;
        };
        self.enqueue(device);
        after.push(ways[way].last);
        let used = [Some(ways[way].rate), Some(both), self.bus, self.memory];
        let uses = used.into_iter().flatten();
        let job = self.copy(device, ways[way].engine, uses, bytes, &after);
        if let Some((ways, _)) = &mut self.devices[device].link {
            ways[way].last = job;
        }
        vec![job]
    }

    /// Brings a datum to host memory, if it is not there or on its way. Says after what it is
    /// there.
    fn store(&mut self, datum: usize) -> Arrival {
        if let Some(arrival) = &self.host[datum] {
            return arrival.clone();
        }
        let mut devices = self.devices.iter().enumerate();
        let holder = devices.find_map(|(d, of)| Some((d, of.has.get(datum)?.clone()?)));
        let Some((holder, made)) = holder else {
            return Arrival::new();
        };
        let arrival = self.over_link(holder, 1, made, self.problem.data[datum].bytes);
        self.host[datum] = Some(arrival.clone());
        arrival
    }

    /// A datum leaves a device's memory.
    fn drop_from(&mut self, policy: &mut dyn Policy, device: usize, datum: usize) {
        let of = &mut self.devices[device];
        if of.has.get_mut(datum).and_then(Option::take).is_some() {
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
            self.host[datum] = (!is_own).then(Arrival::new);
            if is_own {
                self.devices[device].has[datum] = Some(Arrival::new());
                policy.arrived(device, datum);
            }
            self.writers[datum] -= 1;
            if self.writers[datum] == 0 && self.wanted[datum] {
                self.store(datum);
            }
        }
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
    use super::super::{Datum, DeviceModel, Eager, Links, Task};
    use super::*;
    use crate::machine::DeviceKind;
    use crate::runtime::CommandCosts;

    /// Two tasks of 2 ms, each with a datum that it reads and one that it makes, on a device with
    /// room for so many of them, to and from which each takes 1 ms.
    fn two_tasks(room: u64, costs: CommandCosts) -> f64 {
        two_tasks_over(room, costs, None, None)
    }

    /// The same with a link that is faster one way, and the host's memory.
    fn two_tasks_over(
        room: u64,
        costs: CommandCosts,
        one_way: Option<[f64; 2]>,
        host: Option<f64>,
    ) -> f64 {
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
                one_way,
                memory: Some(room * 1_000_000),
                costs,
            }],
            links: Links {
                host,
                ..Links::default()
            },
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
    fn a_link_is_faster_in_one_way_alone_unless_memory_is_slow() {
        let over = |host| two_tasks_over(4, CommandCosts::default(), Some([2e9; 2]), host);
        // Loaded until 0.5 and 1 ms, computed until 2.5 and 4.5, stored until 3 and 5.
        assert_near(over(None), 5.0);
        assert_near(over(Some(1e9)), 6.0);
    }

    #[test]
    fn commands_cost_what_they_are_said_to() {
        let costs = |enqueue, launch, latency, completion| CommandCosts {
            enqueue,
            launch,
            behind_write: 0.0,
            latency,
            completion,
            kernels: 1,
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

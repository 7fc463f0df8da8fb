//! The simulated nodes with their drivers' parts.

use std::sync::Arc;

use super::node::{Begun, Command, Node};
use super::{
    Cluster, Events, Options, Report, SimulateError, SimulatedChain, SimulatedEvent, SubtaskKernel,
    Tasks, busiest,
};
use crate::graph::able;
use crate::machine::cluster::NetworkSpec;
use crate::runtime::IdMap;
use crate::runtime::sim::bandwidth_sharing::{Resource, Use};
use crate::runtime::sim::noise::Noise;
use crate::runtime::sim::schedule::{Demand, Ended, Engine, JobId, Schedule};
use crate::time::Nanos;
use pdawl_core::cluster::NodeId;
use pdawl_core::cluster::protocol::{
    Action, DeviceIndex, Event, Message, NodeMachine, RequestId, Results,
};
use pdawl_core::cluster::record::{
    ClusterOutcome, CommandRecord, DevicePart, NodeRecord, TaskRecord,
};
use pdawl_core::cluster::space::{SpaceBlock, Spaces};
use pdawl_core::cluster::task::{Task, TaskId};

/// A job of the schedule.
enum Doing {
    /// A command of a node's device.
    Command(usize, Command),
    /// A transfer to a node.
    Transfer(usize, TransferContent),
}

/// What a transfer brings.
enum TransferContent {
    Data(RequestId),
    Partial(TaskId),
}

pub(super) struct World<'a> {
    spec: &'a NetworkSpec,
    tasks: Tasks<'a>,
    options: &'a Options,
    first_spaces: &'a Spaces,
    spaces: Spaces,
    /// How many tasks' results the spaces have, and how many restarts they have seen.
    recorded: u64,
    restarts: u64,
    nodes: Vec<Node>,
    /// What happens on devices, links and the switch.
    schedule: Schedule,
    switch: Option<Resource>,
    /// Where transfers are, as if they were a device's, and what carries any number of them.
    wires: (usize, Engine),
    doing: IdMap<JobId, Doing>,
    events: Events,
    now: Nanos,
    began: Option<Nanos>,
    ended: Nanos,
    noise: Noise,
    messages: u64,
    failed: Option<String>,
    /// When node 0 began and ended its tasks, where the run is traced.
    timeline: Vec<TaskRecord>,
}

/// Nodes begin a task when their program has prepared it. The simulator does not know for
/// how long; nodes of a real cluster differ by about this much.
const PREPARES: Nanos = 10_000;

impl<'a> World<'a> {
    pub fn new(
        cluster: &'a Cluster,
        spaces: &'a Spaces,
        tasks: Tasks<'a>,
        options: &'a Options,
    ) -> Self {
        let spec = &cluster.network;
        let mut schedule = Schedule::default();
        let nodes = cluster.nodes.iter().enumerate();
        let nodes = nodes.map(|(node, machine)| {
            let me = NodeId(node as u32);
            Node::new(me, machine, cluster, options, &mut schedule)
        });
        let nodes = nodes.collect();
        let switch = spec.switch_bandwidth;
        let switch = switch.map(|bandwidth| schedule.fluid().resource(bandwidth));
        let wires = (schedule.device(), schedule.engine(u32::MAX));
        let mut world = Self {
            spec,
            tasks,
            options,
            first_spaces: spaces,
            spaces: spaces.clone(),
            recorded: 0,
            restarts: 0,
            nodes,
            schedule,
            switch,
            wires,
            doing: IdMap::default(),
            events: Events::default(),
            now: 0,
            began: None,
            ended: 0,
            noise: Noise::new(options.seed, options.noise.unwrap_or(0.0)),
            messages: 0,
            failed: None,
            timeline: Vec::new(),
        };
        if let Some(part) = options.part {
            world.nodes[0].machine.take_part(part);
        }
        for node in 0..world.nodes.len() {
            let mut actions = Vec::new();
            world.nodes[node].machine.hello(&mut actions);
            world.act(node, actions);
        }
        for slow in &options.slowdowns {
            world.at(
                slow.at,
                slow.node.index(),
                SimulatedEvent::Slowed(slow.fraction),
            );
        }
        world
    }

    fn at(&mut self, at: Nanos, node: usize, event: SimulatedEvent) {
        self.events.plan(at, node, event);
    }

    pub fn run(mut self) -> Result<Report, SimulateError> {
        while self.step() {
            if let Some(why) = self.failed {
                return Err(SimulateError::Failed(why));
            }
            let ended = |node: &Node| node.next == self.tasks.count() && !node.computes;
            if self.now == self.ended && self.nodes.iter().all(ended) {
                return Ok(self.report());
            }
        }
        let why =
            "nothing happens any more, and tasks have not ended; this is a mistake of the policy";
        Err(SimulateError::Failed(why.to_owned()))
    }

    /// What happens next, if anything does.
    fn step(&mut self) -> bool {
        let planned = self.events.next_at();
        let changed = self.schedule.next_change();
        if let Some(at) = changed.filter(|at| planned.is_none_or(|planned| *at <= planned)) {
            self.now = at;
            self.schedule.advance(at);
            for ended in self.schedule.take_ended() {
                self.ended(&ended);
            }
            return true;
        }
        let Some((at, node, event)) = self.events.next() else {
            return false;
        };
        self.now = at;
        // Time passes for the schedule, too.
        self.schedule.advance(self.now);
        self.handle(node, event);
        true
    }

    fn report(mut self) -> Report {
        let seconds = (self.ended - self.began.unwrap_or(0)) as f64 * 1e-9;
        let requests = self.nodes[0].machine.requests();
        let busiest = busiest(&self.nodes, self.schedule.fluid(), self.switch, seconds);
        let records = self.nodes.into_iter().map(|node| {
            let devices = node.devices.iter().map(|device| DevicePart {
                name: device.info.name.clone(),
                subtasks: device.subtasks,
                seconds: device.took as f64 * 1e-9,
            });
            let (computing, counts) = (node.computing(self.ended), node.machine.counts());
            NodeRecord {
                devices: devices.collect(),
                subtasks: counts.subtasks,
                copied: counts.copied,
                given_back: counts.given_back,
                busy_seconds: computing,
                idle_seconds: (seconds - computing).max(0.0),
                ..node.record
            }
        });
        Report {
            outcome: ClusterOutcome {
                seconds,
                tasks: self.tasks.count(),
                restarts: self.restarts,
                nodes: records.collect(),
                figure: None,
                requests: (requests.asked > 0).then_some([requests.asked, requests.brought]),
                timeline: self.timeline,
            },
            busiest,
            messages: self.messages,
        }
    }

    /// Tells a node's machine something, and does what it answers.
    fn tell(
        &mut self,
        node: usize,
        tell: impl FnOnce(&mut NodeMachine, &Spaces, Nanos, &mut Vec<Action>),
    ) {
        let mut actions = Vec::new();
        let machine = &mut self.nodes[node].machine;
        tell(machine, &self.spaces, self.now, &mut actions);
        self.act(node, actions);
    }

    fn handle(&mut self, index: usize, event: SimulatedEvent) {
        let now = self.now;
        let event = match event {
            SimulatedEvent::Event(event) => event,
            SimulatedEvent::Done(begun) => {
                let Begun {
                    device,
                    task,
                    subtask,
                    ..
                } = begun;
                self.nodes[index].ends(device.0 as usize, begun.at, now);
                let took = now - begun.at;
                Event::Done {
                    device,
                    task,
                    subtask,
                    took,
                }
            }
            SimulatedEvent::Enqueued(subtask) => {
                let (begun, kernel) = *subtask;
                return self.enqueued(index, begun, kernel);
            }
            SimulatedEvent::Begin => return self.begin(index),
            SimulatedEvent::Slowed(fraction) => {
                for device in &mut self.nodes[index].devices {
                    device.model.slow(1.0 / fraction, self.schedule.fluid());
                }
                return;
            }
        };
        self.tell(index, |machine, spaces, now, actions| {
            machine.on(event, now, spaces, actions);
        });
        let node = &mut self.nodes[index];
        if !node.ready && node.machine.is_ready() {
            node.ready = true;
            self.at(now + PREPARES, index, SimulatedEvent::Begin);
        }
    }

    fn begin(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        if node.computes || !node.ready {
            return;
        }
        let Some(chain) = self.tasks.chain(node.next) else {
            return self.ended = self.now;
        };
        node.first = node.next;
        node.next += chain.tasks.len() as u64;
        node.chain = Some(chain.clone());
        let chain = chain.chain;
        node.computes = true;
        self.began.get_or_insert(self.now);
        if index == 0 {
            self.note_task(chain.tasks().first());
        }
        self.tell(index, |machine, spaces, now, actions| {
            machine.begin(chain, spaces, now, actions);
        });
    }

    /// Notes that node 0 begins a task, if the run is traced.
    fn note_task(&mut self, task: Option<&Arc<dyn Task>>) {
        if let Some(task) = task.filter(|_| self.options.traces) {
            self.timeline.push(TaskRecord {
                name: task.name().to_owned(),
                began: self.now,
                ended: self.now,
            });
        }
    }

    fn act(&mut self, index: usize, actions: Vec<Action>) {
        for action in actions {
            self.act_one(index, action);
        }
    }

    fn act_one(&mut self, index: usize, action: Action) {
        match action {
            Action::Send { to, message } => self.send(index, to.index(), message),
            Action::Serve {
                to,
                request,
                sources,
            } => {
                let parts = sources.iter().map(|source| &source.part);
                let bytes = parts.map(|part| self.spaces.bytes(part)).sum();
                self.transfer(index, to.index(), bytes, TransferContent::Data(request));
            }
            Action::Start { device, subtask } => self.start(index, device, subtask),
            Action::SendCombined { to } => {
                let node = &self.nodes[index];
                let written = node.chain.as_ref().map(|of| of.chain.writes(0));
                let bytes = self.bytes(&written.unwrap_or_default());
                let task = node.machine.task();
                self.transfer(index, to.index(), bytes, TransferContent::Partial(task));
            }
            Action::WakeAt(at) => {
                let at = at.max(self.now + 1);
                self.at(at, index, SimulatedEvent::Event(Event::Woken));
            }
            Action::Ended {
                index: task,
                results,
            } => self.task_ended(index, task, &results),
            Action::Restart { .. } => self.restart(index),
            Action::Fail { why } => self.failed = Some(why),
            // No node is lost.
            Action::Lost { .. } | Action::FirstLost | Action::Excluded { .. } => {}
            // Kernels run to their end, and contents are not simulated.
            Action::Abort { .. }
            | Action::Keep { .. }
            | Action::Discard { .. }
            | Action::Release { .. } => {}
        }
    }

    fn bytes(&self, parts: &[SpaceBlock]) -> u64 {
        parts.iter().map(|part| self.spaces.bytes(part)).sum()
    }

    fn send(&mut self, from: usize, to: usize, message: Message) {
        let event = Event::Message {
            from: NodeId(from as u32),
            message,
        };
        if from == to {
            return self.at(self.now, to, SimulatedEvent::Event(event));
        }
        self.messages += 1;
        let overhead = self.spec.message_ns;
        let sender = &mut self.nodes[from];
        sender.sends = sender.sends.max(self.now) + overhead;
        sender.handling[0] += overhead;
        let arrives = sender.sends + self.spec.latency_ns;
        let receiver = &mut self.nodes[to];
        receiver.receives = receiver.receives.max(arrives) + overhead;
        receiver.handling[1] += overhead;
        let at = receiver.receives;
        self.at(at, to, SimulatedEvent::Event(event));
    }

    fn transfer(&mut self, from: usize, to: usize, bytes: u64, content: TransferContent) {
        self.messages += 1;
        self.nodes[from].record.sent_bytes += bytes;
        self.nodes[to].record.received_bytes += bytes;
        let links = [self.nodes[from].out, self.nodes[to].into];
        let links = links.into_iter().chain(self.switch);
        // A transfer of nothing takes its latency.
        let bytes = bytes.max(1) as f64;
        let (device, engine) = self.wires;
        let demand = Demand::of(engine, links.map(|link| Use::of(link, bytes)).collect());
        let job = self.schedule.submit(device, demand, &[], false);
        self.doing.insert(job, Doing::Transfer(to, content));
    }

    /// A job has ended.
    fn ended(&mut self, ended: &Ended) {
        match self.doing.remove(&ended.job) {
            Some(Doing::Transfer(to, content)) => self.transferred(to, &content),
            Some(Doing::Command(node, command)) => self.commanded(node, command, ended),
            None => {}
        }
    }

    fn transferred(&mut self, to: usize, content: &TransferContent) {
        let event = match *content {
            TransferContent::Data(request) => Event::Fetched { request },
            TransferContent::Partial(task) if self.nodes[to].machine.task() == task => {
                Event::Combined
            }
            TransferContent::Partial(_) => return,
        };
        let at = self.now + self.spec.latency_ns + self.spec.message_ns;
        self.at(at, to, SimulatedEvent::Event(event));
    }

    /// A command of a node's device has ended.
    fn commanded(&mut self, index: usize, command: Command, ended: &Ended) {
        let node = &mut self.nodes[index];
        let Command { stage, of, is_last } = command;
        let device = &mut node.devices[of.device.0 as usize];
        let time = ended.started..ended.at;
        device.ended(stage, &time);
        let at = ended.at + device.model.completion;
        if self.options.traces {
            node.record.commands.push(CommandRecord {
                device: of.device.0,
                queue: stage as u32,
                stage,
                task: of.place,
                subtask: of.own,
                bytes: command.bytes(),
                queued: of.at,
                started: time.start,
                ended: time.end,
            });
        }
        if is_last {
            self.at(at, index, SimulatedEvent::Done(of));
        }
    }

    /// A node begins a subtask, on the device that it has chosen if that is able to.
    fn start(&mut self, index: usize, chosen: DeviceIndex, subtask: u64) {
        let node = &self.nodes[index];
        let Some(SimulatedChain { chain, tasks }) = node.chain.clone() else {
            return;
        };
        let (place, own) = chain.place(subtask);
        let kernel = SubtaskKernel::of(&*tasks[place], own, &self.spaces);
        let is_able = |device: usize| able(&node.devices[device].model.device, kernel.codelet());
        let chosen = chosen.0 as usize;
        let device = match is_able(chosen) {
            true => chosen,
            false => (0..node.devices.len())
                .find(|device| is_able(*device))
                .unwrap_or(chosen),
        };
        let begun = Begun {
            device: DeviceIndex(device as u32),
            task: node.machine.task(),
            place: (node.first + place as u64) as u32,
            subtask,
            own,
            at: self.now,
            bytes: [
                self.bytes(&chain.reads(subtask)),
                self.bytes(&chain.writes(subtask)),
            ],
        };
        let slower = self.slower(&begun, index);
        let now = self.now;
        let node = &mut self.nodes[index];
        node.starts(now);
        let of = &node.devices[device];
        let demand = of.model.kernel(&kernel.demand(), slower);
        let takes = of.enqueues(begun.bytes);
        if takes == 0 {
            return self.enqueued(index, begun, demand);
        }
        node.enqueues = node.enqueues.max(now) + takes;
        node.handling[2] += takes;
        let at = node.enqueues;
        let event = SimulatedEvent::Enqueued(Box::new((begun, demand)));
        self.at(at, index, event);
    }

    /// The factor by which a subtask's commands take longer than described.
    fn slower(&self, begun: &Begun, index: usize) -> f64 {
        let all = self.nodes.len() as u64;
        self.noise.factor(begun.subtask * all + index as u64)
    }

    /// A node has enqueued the commands of a subtask, whose kernel needs this.
    fn enqueued(&mut self, index: usize, begun: Begun, kernel: Demand) {
        let slower = self.slower(&begun, index);
        let device = &mut self.nodes[index].devices[begun.device.0 as usize];
        for (job, command) in device.enqueue(begun, kernel, slower, &mut self.schedule) {
            self.doing.insert(job, Doing::Command(index, command));
        }
    }

    /// The task of an index in a node's chain has ended.
    fn task_ended(&mut self, index: usize, place: usize, results: &Results) {
        let node = &mut self.nodes[index];
        let Some(chain) = node.chain.as_ref().map(|of| Arc::clone(&of.chain)) else {
            return;
        };
        let number = node.first + place as u64;
        if self.recorded <= number {
            self.recorded = number + 1;
            self.spaces.record(&*chain.tasks()[place], results);
        }
        self.ended = self.now;
        let following = chain.tasks().get(place + 1);
        node.computes = following.is_some();
        let next = node.next;
        if let Some(last) = self.timeline.last_mut().filter(|_| index == 0) {
            last.ended = self.now;
        }
        if index == 0 {
            self.note_task(following);
        }
        if following.is_none() && next < self.tasks.count() {
            self.at(self.now + PREPARES, index, SimulatedEvent::Begin);
        }
    }

    /// The tasks begin anew, with the spaces as they were at first.
    fn restart(&mut self, index: usize) {
        // The first node that hears of it resets what all share.
        let restarts = self.nodes[index].machine.restarts();
        if restarts > self.restarts {
            self.recorded = 0;
            self.restarts = restarts;
            self.spaces = self.first_spaces.clone();
        }
        let node = &mut self.nodes[index];
        node.next = 0;
        node.computes = false;
        node.record.commands.clear();
        if index == 0 {
            self.timeline.clear();
        }
        self.at(self.now + PREPARES, index, SimulatedEvent::Begin);
    }
}

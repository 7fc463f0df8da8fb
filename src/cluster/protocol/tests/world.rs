//! A cluster whose messages and devices take random times. Messages between two nodes stay
//! in order.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::RandomTask;
use super::check::{Contents, elements, first_contents, reference, value};
use super::seen::{Faults, Seen};
use crate::cluster::NodeId;
use crate::cluster::info::NodeInfo;
use crate::cluster::protocol::{
    Action, DeviceIndex, Event, Message, NodeMachine, RequestId, Settings,
};
use crate::cluster::space::{Part, SpaceId, Spaces};
use crate::cluster::task::{Task, TaskId};
use crate::spread::NamedSpread;
use crate::time::Nanos;

/// What happens at a node.
enum Happens {
    Event(Event),
    /// Data of another node.
    Data(RequestId, Contents),
    /// Another node's combined results.
    Partial(TaskId, Vec<u64>),
    Done(TaskId, DeviceIndex, u64, Nanos),
    Begin,
    Kill,
}

/// A node with its driver's part.
struct Node {
    machine: NodeMachine,
    spaces: Spaces,
    info: NodeInfo,
    alive: bool,
    /// Devices that are lost.
    failed: HashSet<DeviceIndex>,
    /// The number of the task that it begins next.
    next: usize,
    computes: bool,
    own: Contents,
    fetched: HashMap<RequestId, Contents>,
    /// Results that are kept or held.
    kept: HashSet<u64>,
    combined: Vec<u64>,
}

pub struct World {
    nodes: Vec<Node>,
    first_spaces: Spaces,
    count: u32,
    tasks: Vec<Arc<RandomTask>>,
    reference: Vec<Contents>,
    happens: BTreeMap<(Nanos, u64), (usize, Happens)>,
    number: u64,
    now: Nanos,
    /// When the last message between two nodes arrives.
    wires: HashMap<(usize, usize), Nanos>,
    random: fastrand::Rng,
    failed: Option<String>,
    seen: Seen,
}

/// More happens only where nodes do not come to an end.
const MOST: u64 = 400_000;

impl World {
    pub fn new(
        infos: Vec<NodeInfo>,
        (spaces, count): (Spaces, u32),
        tasks: Vec<Arc<RandomTask>>,
        spread: NamedSpread,
        faults: Faults,
        mut random: fastrand::Rng,
    ) -> Self {
        let reference = reference(&spaces, &tasks, count);
        let settings = Settings {
            prefetch: random.u32(..3),
            cache: if random.bool() {
                u64::MAX
            } else {
                random.u64(..400)
            },
            ..Settings::default()
        };
        let number = infos.len() as u32;
        let nodes = infos.into_iter().enumerate().map(|(node, info)| {
            let me = NodeId(node as u32);
            let spread = (node == 0).then(|| spread.spread(1));
            let program = "test".to_owned();
            let machine = NodeMachine::new(me, number, program, info.clone(), settings, spread);
            Node {
                machine,
                spaces: spaces.clone(),
                own: first_contents(&spaces, count, me, |node| node),
                info,
                alive: true,
                failed: HashSet::new(),
                next: 0,
                computes: false,
                fetched: HashMap::new(),
                kept: HashSet::new(),
                combined: Vec::new(),
            }
        });
        let mut world = Self {
            nodes: nodes.collect(),
            first_spaces: spaces,
            count,
            tasks,
            reference,
            happens: BTreeMap::new(),
            number: 0,
            now: 0,
            wires: HashMap::new(),
            random: fastrand::Rng::with_seed(random.u64(..)),
            failed: None,
            seen: Seen::default(),
        };
        for node in 0..world.nodes.len() {
            let mut actions = Vec::new();
            world.nodes[node].machine.hello(&mut actions);
            world.act(node, actions);
            if node > 0 && random.f64() < faults.nodes {
                let at = world.random_moment();
                world.at(at, node, Happens::Kill);
            }
            for device in 0..world.nodes[node].info.devices.len() as u32 {
                if random.f64() < faults.devices {
                    let (device, why) = (DeviceIndex(device), "test".into());
                    let at = world.random_moment();
                    world.at(at, node, Happens::Event(Event::DeviceLost { device, why }));
                }
            }
        }
        world
    }

    /// A moment within the run, more often near its begin, after all nodes are there.
    fn random_moment(&mut self) -> Nanos {
        1_000_000 + (self.random.f64().powi(2) * 20e6) as Nanos
    }

    fn at(&mut self, at: Nanos, node: usize, happens: Happens) {
        self.number += 1;
        self.happens.insert((at, self.number), (node, happens));
    }

    /// Sends something, which arrives after what was sent before.
    fn wire(&mut self, from: usize, to: usize, happens: Happens) {
        let delay = 1_000 + (self.random.f64().powi(3) * 500_000.0) as Nanos;
        let last = self.wires.get(&(from, to)).copied().unwrap_or(0);
        let at = (self.now + delay).max(last + 1);
        self.wires.insert((from, to), at);
        self.at(at, to, happens);
    }

    /// Runs to the end: an error says what is wrong.
    pub fn run(mut self) -> Result<Seen, String> {
        while let Some(((now, _), (node, happens))) = self.happens.pop_first() {
            self.now = now;
            if self.number > MOST {
                return Err("it does not end".into());
            }
            if !self.nodes[node].alive {
                continue;
            }
            let actions = self.happen(node, happens);
            self.act(node, actions);
            if let Some(why) = self.failed {
                let none_left = why.contains("no node has a device left");
                return if none_left { Ok(self.seen) } else { Err(why) };
            }
            let ended = |node: &Node| node.next == self.tasks.len() && !node.computes;
            if self.nodes.iter().all(|node| !node.alive || ended(node)) {
                return self.agree().map(|()| self.seen);
            }
        }
        Err("nothing happens any more".into())
    }

    /// All directories agree, and their holders have the right contents.
    fn agree(&self) -> Result<(), String> {
        let last = &self.reference[self.tasks.len()];
        for node in self.nodes.iter().filter(|node| node.alive) {
            for space in (0..self.count).map(SpaceId) {
                let whole = self.first_spaces.extent(space).whole();
                for (block, holder) in node.spaces.directory(space).holders(&whole) {
                    let holder = &self.nodes[holder.node.index()];
                    for element in elements(&Part { space, block }) {
                        let has = holder.own.get(&element).or(Some(&0));
                        if holder.alive && has != last.get(&element) {
                            return Err(format!("{element:?} is {has:?}"));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn happen(&mut self, index: usize, happens: Happens) -> Vec<Action> {
        let now = self.now;
        let node = &mut self.nodes[index];
        let mut actions = Vec::new();
        let event = match happens {
            Happens::Event(event) => {
                if let Event::DeviceLost { device, .. } = event {
                    node.failed.insert(device);
                }
                event
            }
            Happens::Data(request, contents) => {
                node.fetched.insert(request, contents);
                Event::Fetched { request }
            }
            Happens::Partial(task, results) => {
                if node.machine.task() != task {
                    return actions;
                }
                node.combined.extend(results);
                Event::Combined
            }
            Happens::Done(task, device, subtask, took) => {
                if node.failed.contains(&device) {
                    return actions;
                }
                if node.machine.task() == task {
                    node.kept.insert(subtask);
                }
                Event::Done {
                    device,
                    subtask,
                    took,
                }
            }
            Happens::Begin => {
                if node.computes || node.next == self.tasks.len() {
                    return actions;
                }
                node.computes = true;
                node.next += 1;
                node.kept.clear();
                node.combined.clear();
                let task = Arc::clone(&self.tasks[node.next - 1]);
                node.machine.begin(task, &node.spaces, now, &mut actions);
                return actions;
            }
            Happens::Kill => {
                node.alive = false;
                let event = Event::NodeLost {
                    node: NodeId(index as u32),
                };
                // Another node may notice it before the coordinator does.
                for to in [self.random.usize(..self.nodes.len()), 0] {
                    let at = now + self.random.u64(1_000..3_000_000);
                    self.at(at, to, Happens::Event(event.clone()));
                }
                return actions;
            }
        };
        let was_ready = node.machine.is_ready();
        node.machine.on(event, now, &node.spaces, &mut actions);
        if !was_ready && node.machine.is_ready() {
            self.begin_soon(index);
        }
        actions
    }

    fn begin_soon(&mut self, node: usize) {
        let at = self.now + self.random.u64(1..200_000);
        self.at(at, node, Happens::Begin);
    }

    fn act(&mut self, index: usize, actions: Vec<Action>) {
        for action in actions {
            if let Err(why) = self.act_one(index, action) {
                self.failed.get_or_insert(why);
            }
        }
    }

    fn act_one(&mut self, index: usize, action: Action) -> Result<(), String> {
        let node = &mut self.nodes[index];
        let task = node.machine.task();
        match action {
            Action::Send { to, message } => {
                let from = NodeId(index as u32);
                match &message {
                    Message::Fetch { .. } => self.seen.fetches += 1,
                    Message::Revoked { subtasks, .. } => {
                        self.seen.revoked += subtasks.iter().map(|r| r.end - r.start).sum::<u64>();
                    }
                    Message::Combined { .. } => self.seen.combined += 1,
                    _ => {}
                }
                let event = Event::Message { from, message };
                self.wire(index, to.index(), Happens::Event(event));
            }
            Action::Serve { to, request, parts } => {
                let elements = parts.iter().flat_map(elements);
                let has = |element| (element, node.own.get(&element).copied().unwrap_or(0));
                let contents = elements.map(has).collect();
                self.wire(index, to.index(), Happens::Data(request, contents));
            }
            Action::Start { device, subtask } => self.start(index, device, subtask)?,
            Action::Abort { .. } => {}
            Action::Keep { subtask } => {
                if !node.kept.contains(&subtask) {
                    return Err(format!("{subtask} is kept, but not done"));
                }
                node.combined.push(subtask);
            }
            Action::Discard { subtask } => {
                self.seen.discards += 1;
                if !node.kept.remove(&subtask) {
                    return Err(format!("{subtask} is discarded, but not there"));
                }
            }
            Action::Release { request } => {
                node.fetched.remove(&request);
            }
            Action::SendCombined { to } => {
                let results = std::mem::take(&mut node.combined);
                self.wire(index, to.index(), Happens::Partial(task, results));
            }
            Action::WakeAt(at) => {
                let at = at.max(self.now + 1);
                self.at(at, index, Happens::Event(Event::Woken));
            }
            Action::Ended { results } => self.ended(index, &results)?,
            Action::Restart { .. } => {
                self.seen.restarts += 1;
                let me = NodeId(index as u32);
                let heir = |node| self.nodes[index].machine.heir(node);
                let own = first_contents(&self.first_spaces, self.count, me, heir);
                let mut spaces = self.first_spaces.clone();
                for lost in (0..self.nodes.len() as u32).map(NodeId) {
                    spaces.lost(lost, heir(lost));
                }
                let node = &mut self.nodes[index];
                (node.own, node.spaces, node.next) = (own, spaces, 0);
                node.computes = false;
                node.fetched.clear();
                self.begin_soon(index);
            }
            Action::Lost { node: lost, heir } => {
                self.seen.losses += 1;
                if node.spaces.lost(lost, heir) {
                    return Err("data are lost without a restart".into());
                }
            }
            Action::Fail { why } => return Err(why),
            Action::FirstLost => return Err("the first node is lost".into()),
            Action::Excluded { by } => return Err(format!("{by} takes {index} for lost")),
        }
        Ok(())
    }

    /// Checks that all that a subtask reads is there, and is what it should be.
    fn start(&mut self, index: usize, device: DeviceIndex, subtask: u64) -> Result<(), String> {
        let node = &self.nodes[index];
        let number = node.next - 1;
        let me = NodeId(index as u32);
        for part in self.tasks[number].reads(subtask) {
            for (block, holder) in node.spaces.directory(part.space).holders(&part.block) {
                let space = part.space;
                for element in elements(&Part { space, block }) {
                    let fetched = || node.fetched.values().find_map(|c| c.get(&element));
                    let has = match node.machine.heir(holder.node) == me {
                        true => node.own.get(&element).or(Some(&0)),
                        false => fetched(),
                    };
                    if has != self.reference[number].get(&element) {
                        return Err(format!("{subtask} begins where {element:?} is {has:?}"));
                    }
                }
            }
        }
        let info = &node.info.devices[device.0 as usize];
        let seconds = self.tasks[number].cost(subtask).flops / info.flops;
        // Now and then something takes far longer.
        let slow = if self.random.u32(..20) == 0 {
            20.0
        } else {
            0.5 + self.random.f64()
        };
        let took = (seconds * slow * 1e9) as Nanos + 1;
        let task = node.machine.task();
        let at = self.now + took;
        self.at(at, index, Happens::Done(task, device, subtask, took));
        Ok(())
    }

    fn ended(
        &mut self,
        index: usize,
        results: &[(std::ops::Range<u64>, NodeId)],
    ) -> Result<(), String> {
        let node = &mut self.nodes[index];
        let number = node.next - 1;
        let task = Arc::clone(&self.tasks[number]);
        let me = NodeId(index as u32);
        let all = results.iter().flat_map(|(range, _)| range.clone());
        if !all.eq(0..task.count()) {
            return Err(format!("the results are {results:?} of {}", task.count()));
        }
        let mine = results.iter().filter(|(_, node)| *node == me);
        for subtask in mine.flat_map(|(range, _)| range.clone()) {
            if !task.reduces() && !node.kept.contains(&subtask) {
                return Err(format!("{me} does not have {subtask}"));
            }
            let written = if task.reduces() { 0 } else { subtask };
            for part in task.writes(subtask) {
                node.own
                    .extend(elements(&part).map(|e| (e, value(number, written))));
            }
        }
        let mine = results.iter().filter(|(_, node)| *node == me);
        let mine: u64 = mine.map(|(range, _)| range.end - range.start).sum();
        if !task.reduces() && node.kept.len() as u64 != mine {
            return Err(format!("{me} keeps results that another node has"));
        }
        if task.reduces() && results.iter().any(|(_, node)| *node == me) {
            node.combined.sort_unstable();
            if !node.combined.iter().copied().eq(0..task.count()) {
                return Err(format!("combined are {:?}", node.combined));
            }
        }
        node.spaces.record(&*task, results);
        node.fetched.clear();
        node.computes = false;
        self.begin_soon(index);
        Ok(())
    }
}

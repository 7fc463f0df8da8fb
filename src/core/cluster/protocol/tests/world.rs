//! A cluster in one thread and in virtual time: the protocol of each node, over real links of
//! threads ([`crate::cluster::wire::Link`]) whose messages and turns take random times. `turns`
//! has what happens at a node, and `driver` what its driver does.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use super::RandomTask;
use super::check::{Contents, Versions, elements, first_contents, reference};
use super::seen::{Fault, Faults, Seen};
use crate::cluster::NodeId;
use crate::cluster::info::NodeInfo;
use crate::cluster::protocol::{DeviceIndex, Event, NodeMachine, RequestId, Settings};
use crate::cluster::space::{SpaceBlock, SpaceId, Spaces};
use crate::cluster::task::chain::Chain;
use crate::cluster::task::{Task, TaskId};
use crate::cluster::wire::heartbeat::Pulse;
use crate::cluster::wire::local::Local;
use crate::cluster::wire::{Link, Wire};
use crate::spread::{Network, Spread};
use crate::time::Nanos;

/// What happens at a node.
pub enum WorldEvent {
    Event(Event),
    /// Data of another node.
    Data(RequestId, Versions),
    /// Another node's combined results.
    Partial(TaskId, Vec<u64>),
    Done(TaskId, DeviceIndex, u64, Nanos),
    Begin,
    Kill,
    /// It looks what has arrived.
    Turn,
    /// At the first node: another one has ended all tasks of an attempt.
    Summary(u64),
    /// The first node has everything.
    Finish,
}

/// How far a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    Runs,
    /// It has said that nothing is left to be said.
    Settles,
    /// All have. The first node has written the result.
    Leaves,
    Killed,
    /// Its process has ended: the result is right, or there is none for this reason.
    Over(Result<(), String>),
}

/// A node with its driver's part.
pub struct Node {
    pub machine: NodeMachine,
    pub spaces: Spaces,
    pub info: NodeInfo,
    pub stage: Stage,
    /// It does nothing before.
    pub stopped: Nanos,
    /// What has happened to it so far, and what befalls it after some number.
    pub happened: u32,
    pub befalls: Vec<(u32, Fault)>,
    /// Devices that are lost.
    pub failed: HashSet<DeviceIndex>,
    /// The number of the task that it begins next.
    pub next: usize,
    /// The chain that it has begun last, the number of its first task, and how many of its
    /// tasks have ended.
    pub chain: Option<Arc<Chain>>,
    pub first: usize,
    pub ended: usize,
    pub computes: bool,
    /// What it has as its own, but for what was written in the chain.
    pub own: Contents,
    /// What its subtasks have written in the chain, unless that was overwritten in it.
    pub made: Versions,
    pub fetched: HashMap<RequestId, Versions>,
    /// Results that are kept or held, of tasks that have not ended.
    pub kept: HashSet<u64>,
    pub combined: Vec<u64>,
    /// Messages to itself that it has not taken.
    pub own_messages: u32,
    /// Nodes that it knows to be lost.
    pub lost: HashSet<usize>,
    /// At the first node: who has ended all tasks of this attempt.
    pub summaries: HashSet<usize>,
}

impl Node {
    pub fn is_there(&self) -> bool {
        !matches!(self.stage, Stage::Killed | Stage::Over(_))
    }
}

pub struct World {
    pub nodes: Vec<Node>,
    pub links: Vec<Link<Local>>,
    /// What is sent: a message is the place of this.
    pub sent: Vec<Option<WorldEvent>>,
    pub first_spaces: Spaces,
    pub count: u32,
    pub tasks: Vec<Arc<RandomTask>>,
    pub reference: Vec<Contents>,
    events: BTreeMap<(Nanos, u64), (usize, WorldEvent)>,
    number: u64,
    pub now: Nanos,
    pub random: fastrand::Rng,
    /// What is wrong, whatever befalls nodes.
    pub wrong: Option<String>,
    /// Whether anything befell the first node, or a node before all had joined.
    pub may_end: bool,
    pub seen: Seen,
}

/// More happens only where nodes do not come to an end.
const MOST: u64 = 400_000;

/// Nodes are lost that were not heard for ten beats.
pub const PULSE: Pulse = Pulse {
    period: 400_000,
    silence: 4_000_000,
};

impl World {
    pub fn new(
        infos: Vec<NodeInfo>,
        (spaces, count): (Spaces, u32),
        tasks: Vec<Arc<RandomTask>>,
        spread: Box<dyn Spread>,
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
            // Blocks of some elements travel for longer than a message and its answer.
            network: Network {
                bandwidth: if random.bool() { 1e4 } else { 1e9 },
                ..Network::default()
            },
        };
        let number = infos.len();
        let mut spread = Some(spread);
        let nodes = infos.into_iter().enumerate().map(|(node, info)| {
            let me = NodeId(node as u32);
            let (program, of) = ("test".to_owned(), info.clone());
            let spread = spread.take();
            let machine = NodeMachine::new(me, number as u32, program, of, settings, spread);
            Node {
                machine,
                spaces: spaces.clone(),
                own: first_contents(&spaces, count, me, |node| node),
                info,
                stage: Stage::Runs,
                stopped: 0,
                happened: 0,
                befalls: Vec::new(),
                failed: HashSet::new(),
                next: 0,
                chain: None,
                first: 0,
                ended: 0,
                computes: false,
                made: HashMap::new(),
                fetched: HashMap::new(),
                kept: HashSet::new(),
                combined: Vec::new(),
                own_messages: 0,
                lost: HashSet::new(),
                summaries: HashSet::new(),
            }
        });
        let nodes: Vec<Node> = nodes.collect();
        let epoch = Instant::now();
        let links = Local::ranks(number, None).into_iter();
        let mut world = Self {
            nodes,
            links: links
                .map(|local| Link::of_one_clock(local, epoch, Some(PULSE)))
                .collect(),
            sent: Vec::new(),
            first_spaces: spaces,
            count,
            tasks,
            reference,
            events: BTreeMap::new(),
            number: 0,
            now: 1_000_000_000,
            random: fastrand::Rng::with_seed(random.u64(..)),
            wrong: None,
            may_end: false,
            seen: Seen::default(),
        };
        world.plan(faults, &mut random);
        for node in 0..number {
            let mut actions = Vec::new();
            world.nodes[node].machine.hello(&mut actions);
            world.act(node, actions);
            world.turn_soon(node);
        }
        world
    }

    /// Decides what will befall whom.
    fn plan(&mut self, faults: Faults, random: &mut fastrand::Rng) {
        for _ in 0..faults.any {
            let fault = match random.u32(..3) {
                0 => Fault::Kill,
                _ => Fault::Stop((PULSE.silence as f64 * random.f64() * 2.5) as Nanos),
            };
            let after = (random.f64().powi(2) * 300.0) as u32;
            let node = random.usize(..self.nodes.len());
            self.nodes[node].befalls.push((after, fault));
        }
        for node in 0..self.nodes.len() {
            if node > 0 && random.f64() < faults.nodes {
                let at = self.random_moment();
                self.at(at, node, WorldEvent::Kill);
            }
            for device in 0..self.nodes[node].info.devices.len() as u32 {
                if random.f64() < faults.devices {
                    let (device, why) = (DeviceIndex(device), "test".into());
                    let at = self.random_moment();
                    self.at(
                        at,
                        node,
                        WorldEvent::Event(Event::DeviceLost { device, why }),
                    );
                }
            }
        }
    }

    /// A moment within the run, more often near its begin, after all nodes are there.
    fn random_moment(&mut self) -> Nanos {
        self.now + 3_000_000 + (self.random.f64().powi(2) * 20e6) as Nanos
    }

    pub fn at(&mut self, at: Nanos, node: usize, event: WorldEvent) {
        self.number += 1;
        self.events.insert((at, self.number), (node, event));
    }

    pub fn begin_soon(&mut self, node: usize) {
        let at = self.now + self.random.u64(1..200_000);
        self.at(at, node, WorldEvent::Begin);
    }

    /// A node looks at its wire now and then, and rarely does something else for long.
    pub fn turn_soon(&mut self, node: usize) {
        let most = match self.random.u32(..50) {
            0 => PULSE.silence / 3,
            _ => PULSE.period / 2,
        };
        let at = self.now + 1 + self.random.u64(..most);
        self.at(at, node, WorldEvent::Turn);
    }

    /// Sends something over the wire.
    pub fn wire(&mut self, from: usize, to: usize, event: WorldEvent) {
        if !self.nodes[from].is_there() {
            return;
        }
        self.nodes[from].own_messages += u32::from(from == to);
        let place = self.sent.len() as u64;
        self.sent.push(Some(event));
        let sent = self.links[from].send(to, place.to_le_bytes().to_vec());
        if let Err(error) = sent {
            self.wrong.get_or_insert(error.to_string());
        }
    }

    /// Runs to the end: an error says what is wrong.
    pub fn run(mut self) -> Result<Seen, String> {
        while let Some(((now, number), (index, event))) = self.events.pop_first() {
            self.now = now;
            if self.number > MOST {
                return Err("it does not end".into());
            }
            if !self.nodes[index].is_there() {
                continue;
            }
            self.befall(index);
            let node = &self.nodes[index];
            if node.stopped > now && !matches!(event, WorldEvent::Kill) {
                // It keeps its place among what comes then.
                let at = (node.stopped, number);
                self.events.insert(at, (index, event));
                continue;
            }
            match event {
                WorldEvent::Turn => self.turn(index),
                WorldEvent::Kill => self.kill(index),
                event => self.handle(index, index, event),
            }
            if let Some(why) = self.wrong {
                return Err(why);
            }
            if !self.nodes.iter().any(Node::is_there) {
                return self.agree();
            }
        }
        Err("nothing happens any more".into())
    }

    /// All nodes have come to one verdict. If there is a result, all directories agree, and
    /// their holders have the right contents.
    fn agree(mut self) -> Result<Seen, String> {
        let mut right = Vec::new();
        let mut ended = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            match &node.stage {
                Stage::Over(Ok(())) => right.push(index),
                Stage::Over(Err(why)) => ended.push((index, why)),
                _ => {}
            }
        }
        let first_killed = self.nodes[0].stage == Stage::Killed;
        if right.contains(&0) {
            // Whoever the first node ended without ends alone.
            let (first, links) = (&self.nodes[0], &self.links[0]);
            let counts = |index: usize| links.counts(index) && !first.lost.contains(&index);
            if let Some((index, why)) = ended.iter().find(|(index, _)| counts(*index)) {
                return Err(format!("node {index} ends, {right:?} are right: {why}"));
            }
        } else if !right.is_empty() && !first_killed {
            return Err(format!(
                "{right:?} are right, but not the first node: {ended:?}"
            ));
        }
        if right.is_empty() {
            self.seen.ended += 1;
            return match self.may_end {
                true => Ok(self.seen),
                false => Err(format!("the run ends without a reason: {ended:?}")),
            };
        }
        self.seen.right += 1;
        let last = &self.reference[self.tasks.len()];
        for node in right.iter().map(|&node| &self.nodes[node]) {
            for space in (0..self.count).map(SpaceId) {
                let whole = self.first_spaces.extent(space).whole();
                for (block, holder) in node.spaces.directory(space).holders(&whole) {
                    let is_right = right.contains(&holder.node.index());
                    let holder = &self.nodes[holder.node.index()];
                    for element in elements(&SpaceBlock { space, block }) {
                        let has = holder.own.get(&element).or(Some(&0));
                        if is_right && has != last.get(&element) {
                            return Err(format!("{element:?} is {has:?}"));
                        }
                    }
                }
            }
        }
        let counts = self.nodes.iter().map(|node| node.machine.counts().subtasks);
        let (counted, all): (u64, u64) = (
            counts.sum(),
            self.tasks.iter().map(|task| task.count()).sum(),
        );
        match right.len() == self.nodes.len() && counted != all {
            true => Err(format!("{counted} of {all} subtasks count")),
            false => Ok(self.seen),
        }
    }
}

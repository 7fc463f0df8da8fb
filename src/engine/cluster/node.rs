//! A node of a cluster that runs: its wire, its devices and its data, driven by the
//! protocol.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::ClusterError;
use super::answers::Answer;
use super::bands::BandMail;
use super::before::abandon;
use super::copying::Copying;
use super::encode::decode;
use super::expected::all_expected;
use super::store::Received;
use super::subtasks::{Subtasks, Written};
use super::traced::Traced;
use crate::machine::host::Memory;
use crate::runtime::{Notice, Runtime};
use crate::spread::Network;
use crate::spread::Spread;
use crate::time::Nanos;
use crate::workload::cluster::Fill;
use pdawl_core::cluster::NodeId;
use pdawl_core::cluster::info::{DeviceInfo, NodeInfo};
use pdawl_core::cluster::protocol::{
    Counts, DeviceIndex, Event, Message, NodeMachine, RequestId, Results, Settings,
};
use pdawl_core::cluster::record::{DevicePart, NodeRecord};
use pdawl_core::cluster::space::{SpaceBlock, Spaces};
use pdawl_core::cluster::task::chain::{Chain, Source};
use pdawl_core::cluster::task::{Computed, TaskId};
use pdawl_core::cluster::wire::agreement::Agreement;
use pdawl_core::cluster::wire::{Arrived, Wire, memory};

/// The results of a reduction, as bytes.
pub(super) type Combined = Vec<(SpaceBlock, Vec<u8>)>;

/// How a cluster runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// What all nodes must run alike, in words: the program, the workload and its sizes.
    pub program: String,
    /// What this node's devices are expected to do, in the runtime's order.
    pub devices: Vec<DeviceInfo>,
    pub settings: Settings,
    /// The network over which nodes that share units must gain more than they exchange, or they
    /// are left out; `None`: all take part.
    pub leaves_out: Option<Network>,
    /// Bytes of host memory for what subtasks read.
    pub input_bytes: u64,
    /// Whether nodes note what their devices do, for a trace.
    pub traces: bool,
}

/// The part of the host's memory that may have what subtasks read.
const INPUT_MEMORY: f64 = 0.3;

impl Options {
    /// The options of a node with these devices, which runs `program`, without a trace.
    pub fn on(runtime: &dyn Runtime, program: String) -> Self {
        let memory = Memory::obtainable_now();
        Self {
            program,
            devices: all_expected(runtime),
            settings: Settings::default(),
            leaves_out: None,
            input_bytes: (memory as f64 * INPUT_MEMORY) as u64,
            traces: false,
        }
    }
}

/// Why a task has no result.
pub(super) enum Interruption {
    /// A node was lost with data that nobody else has: the tasks begin anew.
    Restart,
    Error(ClusterError),
}

impl<E: Into<ClusterError>> From<E> for Interruption {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// A node that has joined a cluster.
pub struct Node<'a> {
    pub(super) wire: Box<dyn Wire>,
    pub(super) runtime: &'a mut dyn Runtime,
    pub(super) machine: NodeMachine,
    pub(super) spaces: Spaces,
    /// By space: how to compute its first contents.
    pub(super) fills: Vec<Option<Fill>>,
    pub(super) subtasks: Subtasks,
    /// What other nodes have asked for, and is on its way to host memory.
    pub(super) answers: Vec<Answer>,
    /// Whether data are gone, so that the tasks begin anew.
    pub(super) has_gaps: bool,
    pub(super) stop: &'a AtomicBool,
    began: Instant,
    /// Until when it polls without pauses.
    pub(super) awake_until: Instant,
    /// Since when nothing has happened.
    pub(super) quiet_since: Instant,
    /// Whether other nodes send data that this one has asked for beside its requests.
    pub(super) collects: bool,
    /// Messages to this node itself.
    pub(super) own: VecDeque<Message>,
    /// What was asked of other nodes.
    pub(super) requests: HashMap<RequestId, Vec<Source>>,
    /// The present chain, and its tasks.
    pub(super) chain: Option<Arc<Chain>>,
    pub(super) tasks: Vec<Arc<dyn Computed>>,
    /// Results that are neither kept nor discarded yet.
    pub(super) held: HashMap<u64, Written>,
    /// Results that the store has, of tasks that have not ended.
    pub(super) kept: HashMap<u64, Written>,
    /// By subtask of the chain: the device that has computed it, and how long that took.
    pub(super) computed: HashMap<u64, (DeviceIndex, Nanos)>,
    /// The combined results of a task that reduces.
    pub(super) combined: Option<Combined>,
    /// How many tasks of the chain have ended.
    pub(super) ended: usize,
    pub(super) restarts: bool,
    pub(super) wake_at: Option<Nanos>,
    pub(super) leaves_out: Option<Network>,
    /// The number of nodes that take part in tasks, the first ones.
    pub(super) part: usize,
    /// The attempt in which the last workload ended.
    pub(super) settled: u64,
    /// Since when devices compute.
    pub(super) busy_since: Option<Instant>,
    pub(super) lost_devices: Vec<DeviceIndex>,
    /// By rank: the nodes that are lost.
    pub(super) lost: Vec<bool>,
    pub(super) record: NodeRecord,
    /// At the first node: what others have reported at the end.
    pub(super) records: Vec<Option<NodeRecord>>,
    /// Requests for blocks of a lost node, of whose loss this node does not know yet.
    pub(super) unserved: Vec<Answer>,
    /// At the first node: parts that others have sent at the end, and where in the bytes.
    pub(super) pieces: HashMap<SpaceBlock, (Vec<u8>, usize)>,
    /// What the first node has said of conditions after tasks: whether they are met, one after
    /// the other. Where others did all the work, it may be several tasks ahead of this node.
    pub(super) verdicts: BTreeMap<TaskId, VecDeque<bool>>,
    /// What the first node has given to all after a task.
    pub(super) common: BTreeMap<TaskId, Vec<u8>>,
    /// What nodes have sent for a co-run.
    pub(super) bands: BandMail,
    /// Pieces of work of co-runs that devices have done.
    pub(super) pieces_done: u64,
    /// What the steps of a co-run took, once they have ended.
    pub(super) steps_took: Duration,
    /// Whether the first node has said that all is done.
    pub(super) is_finished: bool,
    /// At the first node, by rank: what others are to run next.
    pub(super) announced: Vec<Option<Agreement>>,
    /// Whether the first node has said that all are to run the same.
    pub(super) is_agreed: bool,
    /// What became of the subtasks of earlier workloads, which the machine still counts.
    pub(super) earlier: Counts,
}

impl<'a> Node<'a> {
    /// Joins a cluster, and waits until all nodes have. The first node needs the policy.
    ///
    /// # Errors
    /// When nodes run unlike programs, one is lost, or the runtime refuses queues.
    pub fn join(
        mut wire: Box<dyn Wire>,
        runtime: &'a mut dyn Runtime,
        options: Options,
        spread: Option<Box<dyn Spread>>,
        stop: &'a AtomicBool,
    ) -> Result<Self, ClusterError> {
        let (me, nodes) = (NodeId(wire.rank() as u32), wire.size());
        let info = NodeInfo {
            name: wire.host_name().to_owned(),
            memory: Memory::obtainable_now(),
            devices: options.devices,
        };
        let record = NodeRecord {
            name: info.name.clone(),
            devices: (info.devices.iter())
                .map(|device| DevicePart {
                    name: device.name.clone(),
                    ..DevicePart::default()
                })
                .collect(),
            ..NodeRecord::default()
        };
        // The driver thread has all cores until it begins to drive.
        let copying = Arc::new(Copying::start());
        let traced = options.traces.then(Traced::default);
        let own = (options.input_bytes, traced);
        let opened = Subtasks::open(runtime, me, copying, info.devices.clone(), own);
        let subtasks = opened.inspect_err(|error| {
            abandon(&mut *wire, &format!("{me}: {error}"));
        })?;
        let (program, settings) = (options.program, options.settings);
        let machine = NodeMachine::new(me, nodes as u32, program, info, settings, spread);
        let mut node = Self {
            began: wire.epoch(),
            awake_until: Instant::now(),
            quiet_since: Instant::now(),
            collects: false,
            wire,
            runtime,
            machine,
            spaces: Spaces::default(),
            fills: Vec::new(),
            subtasks,
            answers: Vec::new(),
            has_gaps: false,
            stop,
            own: VecDeque::new(),
            requests: HashMap::new(),
            chain: None,
            tasks: Vec::new(),
            held: HashMap::new(),
            kept: HashMap::new(),
            computed: HashMap::new(),
            combined: None,
            ended: 0,
            restarts: false,
            wake_at: None,
            leaves_out: options.leaves_out,
            part: nodes,
            settled: 0,
            busy_since: None,
            lost_devices: Vec::new(),
            lost: vec![false; nodes],
            record,
            records: vec![None; nodes],
            unserved: Vec::new(),
            pieces: HashMap::new(),
            verdicts: BTreeMap::new(),
            common: BTreeMap::new(),
            bands: BandMail::default(),
            pieces_done: 0,
            steps_took: Duration::ZERO,
            is_finished: false,
            announced: vec![None; nodes],
            is_agreed: false,
            earlier: Counts::default(),
        };
        node.runtime.notify(Notice::DrivingBegins);
        let mut actions = Vec::new();
        node.machine.hello(&mut actions);
        let joined = node.act(actions).and_then(|()| {
            while !node.machine.is_ready() {
                node.turn()?;
            }
            Ok(())
        });
        match joined {
            Ok(()) => Ok(node),
            Err(error) => Err(node.fail(error)),
        }
    }

    /// This node.
    pub fn me(&self) -> NodeId {
        NodeId(self.wire.rank() as u32)
    }

    /// Only the first nodes, so many, have data and get subtasks of the workloads that follow,
    /// unless they begin anew. All nodes say the same.
    pub fn take_part(&mut self, nodes: usize) {
        self.part = nodes;
    }

    /// What all nodes have reported of themselves.
    pub fn nodes(&self) -> &[NodeInfo] {
        self.machine.nodes()
    }

    /// The number of all nodes.
    pub fn size(&self) -> u32 {
        self.wire.size() as u32
    }

    pub(super) fn now(&self) -> Nanos {
        self.began.elapsed().as_nanos() as Nanos
    }

    /// Runs a chain of tasks, and tells when one has ended. Afterwards all nodes know who has
    /// the results.
    pub(super) fn run(
        &mut self,
        chain: Chain,
        tasks: Vec<Arc<dyn Computed>>,
        progress: &mut dyn FnMut(),
    ) -> Result<(), Interruption> {
        let (count, chain) = (tasks.len(), Arc::new(chain));
        let now = self.now();
        if let Some(traced) = &mut self.subtasks.traced {
            traced.begin_chain();
            traced.begin(tasks[0].name(), now);
        }
        self.subtasks.store.begin(count);
        (self.chain, self.tasks, self.ended) = (Some(Arc::clone(&chain)), tasks, 0);
        let mut actions = Vec::new();
        (self.machine).begin(chain, &self.spaces, now, &mut actions);
        self.act(actions)?;
        let mut reported = 0;
        loop {
            // The end of a task may be followed at once by news that it begins anew.
            self.check_restart()?;
            while reported < self.ended {
                reported += 1;
                progress();
            }
            if reported == count {
                break;
            }
            self.turn()?;
        }
        self.busy(false);
        self.forget_chain();
        self.subtasks.compact(self.runtime);
        Ok(())
    }

    fn forget_chain(&mut self) {
        let tasks = std::mem::take(&mut self.tasks);
        self.chain = None;
        for written in std::mem::take(&mut self.held).into_values() {
            self.subtasks.discard(written);
        }
        self.kept.clear();
        self.combined = None;
        self.computed.clear();
        self.requests.clear();
        self.unserved.clear();
        self.wake_at = None;
        // All subtasks of a task that reduces write the same parts.
        let unlike = |task: &Arc<dyn Computed>| if task.reduces() { 1 } else { task.count() };
        let spaces = |task: &Arc<dyn Computed>| {
            let parts = (0..unlike(task)).flat_map(|subtask| task.writes(subtask));
            parts.map(|part| part.space).collect::<BTreeSet<_>>()
        };
        let written: BTreeSet<_> = tasks.iter().flat_map(spaces).collect();
        let Subtasks { graph, store, .. } = &mut self.subtasks;
        store.forget_inputs(graph, |read| written.contains(&read.part.space));
        store.release_all(graph);
        store.end();
    }

    /// Whether the tasks must begin anew.
    pub(super) fn check_restart(&mut self) -> Result<(), Interruption> {
        match std::mem::take(&mut self.restarts) {
            true => {
                self.busy(false);
                self.forget_chain();
                Err(Interruption::Restart)
            }
            false => Ok(()),
        }
    }

    /// Waits until all nodes have done their part.
    pub fn settle(mut self) -> Result<Box<dyn Wire>, ClusterError> {
        self.runtime.notify(Notice::DrivingEnds);
        self.subtasks.close(self.runtime);
        self.wire.settle()?;
        Ok(self.wire)
    }

    /// Notes the results of the chain's task of an index, which has ended as those before it
    /// have.
    pub(super) fn end(&mut self, index: usize, results: &Results) -> Result<(), ClusterError> {
        let (me, now) = (self.me(), self.now());
        let Some(task) = self.tasks.get(index).cloned() else {
            return Ok(());
        };
        self.ended = index + 1;
        if let Some(traced) = &mut self.subtasks.traced {
            traced.end(now);
            if let Some(next) = self.tasks.get(index + 1) {
                traced.begin(next.name(), now);
            }
        }
        self.spaces.record(&*task, results);
        if task.reduces() {
            let has_them = results.iter().any(|(_, node)| *node == me);
            let combined = self.combined.take().filter(|_| has_them);
            let Subtasks { graph, store, .. } = &mut self.subtasks;
            for (part, data) in combined.into_iter().flatten() {
                store.insert_bytes(graph, self.runtime, &self.spaces, part, &data)?;
            }
        }
        if let Some(chain) = &self.chain {
            self.kept
                .retain(|subtask, _| chain.place(*subtask).0 > index);
        }
        // All subtasks of a task that reduces write the same parts.
        let unlike = if task.reduces() { 1 } else { task.count() };
        let spaces = &self.spaces;
        let Subtasks { graph, store, .. } = &mut self.subtasks;
        for part in (0..unlike).flat_map(|subtask| task.writes(subtask)) {
            let directory = spaces.directory(part.space);
            store.forget_overwritten(graph, (&part, index), |block| {
                let mut holders = directory.holders(block);
                holders.any(|(_, holder)| holder.node == me)
            });
        }
        Ok(())
    }

    pub(super) fn take_in(&mut self, arrived: Arrived) -> Result<(), ClusterError> {
        let (from, bytes) = match arrived {
            Arrived::Lost { rank, .. } => {
                // Whether the run goes on without it, or begins anew, node 0 says.
                let node = NodeId(rank as u32);
                return self.tell(Event::NodeLost { node });
            }
            Arrived::Excluded { by } => {
                let by = NodeId(by as u32);
                return self.tell(Event::Excluded { by });
            }
            Arrived::Message { from, bytes } => (NodeId(from as u32), bytes),
        };
        let no_message = || ClusterError::NoMessage {
            from: from.to_string(),
        };
        let (message, at) = decode(&bytes).ok_or_else(no_message)?;
        match message {
            Message::Data { request, at: first } => {
                self.record.received_bytes += (bytes.len() - at) as u64;
                // Of a task that has ended, nothing is wanted.
                let Some(sources) = self.requests.get(&request) else {
                    return Ok(());
                };
                let Subtasks { graph, store, .. } = &mut self.subtasks;
                let (asked, data) = ((request, &sources[..]), (first, &bytes[at..]));
                let received = store.receive(graph, self.runtime, &self.spaces, asked, data)?;
                memory::keep(bytes);
                match received {
                    Received::All => {
                        self.requests.remove(&request);
                        self.tell(Event::Fetched { request })
                    }
                    Received::Some => Ok(()),
                    Received::TooMuch => Err(no_message()),
                }
            }
            Message::Partial { task } => {
                self.record.received_bytes += (bytes.len() - at) as u64;
                self.take_partial(task, &bytes[at..])
            }
            Message::Common { task } => {
                self.record.received_bytes += (bytes.len() - at) as u64;
                self.common.insert(task, bytes[at..].to_vec());
                Ok(())
            }
            Message::Piece { attempt, part } => {
                if attempt == self.machine.restarts() {
                    self.pieces.insert(part, (bytes, at));
                }
                Ok(())
            }
            message @ Message::Band { .. } => {
                self.bands.take(from, message, bytes, at);
                Ok(())
            }
            message => self.message(from, message),
        }
    }

    /// Takes a message without data.
    pub(super) fn message(&mut self, from: NodeId, message: Message) -> Result<(), ClusterError> {
        let Some(message) = self.bands.take(from, message, Vec::new(), 0) else {
            return Ok(());
        };
        match message {
            Message::Finish => self.is_finished = true,
            Message::Agreed => self.is_agreed = true,
            Message::Runs { what } => self.announced[from.index()] = Some(what),
            Message::Verdict { task, is_met } => {
                self.verdicts.entry(task).or_default().push_back(is_met);
            }
            Message::Collect { attempt, part } => {
                if attempt == self.machine.restarts() {
                    return self.send_piece(from, part);
                }
            }
            Message::Summary { attempt, record } => {
                if attempt == self.machine.restarts() {
                    self.records[from.index()] = Some(*record);
                }
            }
            message => return self.tell(Event::Message { from, message }),
        }
        Ok(())
    }

    /// Tells the protocol what happened, and does what it answers.
    pub(super) fn tell(&mut self, event: Event) -> Result<(), ClusterError> {
        let mut actions = Vec::new();
        let now = self.now();
        self.machine.on(event, now, &self.spaces, &mut actions);
        self.act(actions)
    }
}

//! Workloads in a simulated cluster, with the same decisions as in a real one. Steps of a co-run
//! are in `bands`, tasks in `world`.
//!
//! One virtual clock; nodes are the state machines of [`pdawl_core::cluster::protocol`]. Their
//! devices, links and the switch are those of [`crate::runtime::sim`]: one schedule has the
//! commands of all devices and the transfers between nodes, which share bandwidth in one
//! [fluid](crate::runtime::sim::bandwidth_sharing). A node's driver handles one message after
//! the other. Contents are not simulated, and neither is what stays in a device's memory: a
//! subtask copies all that it reads to its device, and its result back.
//!
//! Nodes that compute tasks are not those of a real run, with a task graph each: clusters of a
//! thousand nodes have a million subtasks, more than memory has room for as such.

mod bands;
mod node;
mod part;
#[cfg(test)]
mod tests;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;

use self::node::{Begun, Node};
pub use self::part::{TakingPart, taking_part};
use crate::cluster::DEPTH;
use crate::codelet::{Codelet, Cost, HostMemoryId, Memory};
use crate::machine::cluster::NetworkSpec;
use crate::machine::{ClusterFile, MachineError, MachineFile, MachineStore};
use crate::runtime::sim::bandwidth_sharing::Fluid;
use crate::runtime::sim::device_model::{DeviceModel, KernelDemand};
use crate::runtime::sim::schedule::{Demand, Schedule};
use crate::runtime::sim::{Selected, bandwidth_sharing, device_model};
use crate::spread::{NamedSpread, Network as Assumed};
use crate::time::Nanos;
use crate::workload::cluster::ClusterWorkload;
use pdawl_core::cluster::NodeId;
use pdawl_core::cluster::info::{DeviceInfo, NodeInfo, share_bus, speeds};
use pdawl_core::cluster::protocol::{Event, Settings};
use pdawl_core::cluster::record::ClusterOutcome;
use pdawl_core::cluster::space::{SpaceBlock, SpaceId, Spaces};
use pdawl_core::cluster::task::chain::{Chain, Chaining};
use pdawl_core::cluster::task::{Computed, SubtaskLaunch, Task};

/// A cluster to simulate: each node's machine, and the network.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub nodes: Vec<NodeMachine>,
    pub network: NetworkSpec,
}

impl Cluster {
    /// The cluster that a file describes.
    ///
    /// # Errors
    /// A machine that the store does not have, or that is wrong.
    pub fn of(
        file: &ClusterFile,
        store: &MachineStore,
        computing: Computing,
    ) -> Result<Self, MachineError> {
        let mut nodes = Vec::new();
        for alike in &file.nodes {
            let machine = NodeMachine::new(Arc::new(store.find(&alike.machine)?), computing);
            nodes.extend(std::iter::repeat_n(machine, alike.count as usize));
        }
        Ok(Self {
            nodes,
            network: file.network.clone(),
        })
    }

    /// What the nodes assume of the network.
    pub fn assumed(&self) -> Assumed {
        let spec = &self.network;
        Assumed {
            bandwidth: spec.bandwidth,
            round_trip: 2 * (spec.latency_ns + 2 * spec.message_ns),
        }
    }

    /// What the nodes tell of themselves.
    pub fn infos(&self) -> Vec<NodeInfo> {
        let nodes = (0..).map(NodeId).zip(&self.nodes);
        let info = |(node, machine): (NodeId, &NodeMachine)| NodeInfo {
            name: node.to_string(),
            memory: machine.file.host.memory,
            devices: machine.infos(),
        };
        nodes.map(info).collect()
    }
}

/// A node's devices and their links have a fraction of their speed from a moment on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slowdown {
    pub node: NodeId,
    pub at: Nanos,
    pub fraction: f64,
}

/// What happens in a run beside its tasks.
#[derive(Clone, Debug)]
pub struct Options {
    pub spread: NamedSpread,
    /// What nodes assume of the wires is taken from the cluster.
    pub settings: Settings,
    /// Relative standard deviation of the time of a command. None: what the machine file says
    /// for those of a co-run's steps, and none for those of subtasks.
    pub noise: Option<f64>,
    /// Of random times and choices.
    pub seed: u64,
    pub slowdowns: Vec<Slowdown>,
    /// Whether nodes that share units are left out if they gain less than they exchange.
    pub leaves_out: bool,
    /// The number of nodes that take part in tasks, the first ones; none: all.
    pub part: Option<usize>,
    /// Whether the report has what devices did, for a trace.
    pub traces: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            spread: NamedSpread::default(),
            settings: Settings::default(),
            noise: Some(0.0),
            seed: 1,
            slowdowns: Vec::new(),
            leaves_out: false,
            part: None,
            traces: false,
        }
    }
}

/// A simulated run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What the nodes of a real run would have reported.
    pub outcome: ClusterOutcome,
    /// What was busy for the greatest part of the run; none if nothing was.
    pub busiest: Option<Busiest>,
    pub messages: u64,
}

/// What can limit a run. Nodes are named by their rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A device that computes.
    Device(u32, String),
    /// The link between a device and its node's memory, in its busier direction.
    DeviceLink(u32, String),
    /// A node's link to the switch, in a direction. Of a link that carries one direction at
    /// a time, [`Self::LinkOut`] is the whole.
    LinkOut(u32),
    LinkIn(u32),
    Switch,
    /// A node's driver, which handles the messages that the node sends or receives.
    Driver(u32),
}

/// The busiest part of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Busiest {
    pub resource: Resource,
    /// The part of the run in which it was busy, from 0 to 1.
    pub share: f64,
}

/// Why a run did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SimulateError {
    #[error("there is no node {node} to {what}: the cluster has {count} nodes, 0 to {}", count - 1)]
    Node {
        node: u32,
        what: &'static str,
        count: usize,
    },
    #[error("the simulated run has failed: {0}")]
    Failed(String),
}

/// Runs all tasks of a workload, each with the data where the tasks before it left them, or all
/// steps of its co-run. `tile` is the height and the width of blocks, where the placement of
/// inputs has some. Of tasks nothing is computed, and no contents are generated.
///
/// # Errors
/// Options that name nodes which are not there, runs that fail, and what the simulator and the
/// engine refuse, such as a node's part that does not fit.
pub fn simulate(
    cluster: &Cluster,
    workload: &dyn ClusterWorkload,
    tile: u64,
    options: &Options,
) -> Result<Report, SimulateError> {
    let count = cluster.nodes.len();
    let mut slowed = options.slowdowns.iter().map(|slow| slow.node);
    if let Some(node) = slowed.find(|node| node.index() >= count) {
        let (node, what) = (node.0, "slow");
        return Err(SimulateError::Node { node, what, count });
    }
    if let Some(bands) = workload.bands() {
        return bands::simulate(cluster, bands, options);
    }
    let mut spaces = Spaces::default();
    let part = options.part.unwrap_or(count).clamp(1, count);
    let speeds = speeds(&cluster.infos()[..part]);
    let ids = workload.spaces().into_iter().map(|space| {
        let Some(contents) = space.contents else {
            return spaces.add(space.extent, []);
        };
        let layout = contents.layout;
        let blocks = layout.blocks(space.extent, [tile, tile], &speeds);
        match contents.is_made {
            true => spaces.add_made(space.extent, blocks),
            false => spaces.add(space.extent, blocks),
        }
    });
    let tasks = Tasks::of(workload, ids.collect());
    world::World::new(cluster, &spaces, tasks, options).run()
}

/// Which of a machine's devices compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Computing {
    /// The host's cores, as one device, and all others.
    #[default]
    All,
    /// The devices beside the host's cores.
    Gpus,
    /// The host's cores.
    Host,
}

/// A machine that is a node.
#[derive(Clone, Debug)]
pub struct NodeMachine {
    pub file: Arc<MachineFile>,
    devices: Vec<Selected>,
}

impl NodeMachine {
    /// A machine of which these devices compute.
    pub fn new(file: Arc<MachineFile>, computing: Computing) -> Self {
        let host = Selected::Pool(file.host.cores);
        let others = (0..file.devices.len()).map(Selected::Device);
        let devices = match computing {
            Computing::All => std::iter::once(host).chain(others).collect(),
            Computing::Gpus => others.collect(),
            Computing::Host => vec![host],
        };
        Self { file, devices }
    }

    /// Its devices, in a schedule.
    pub fn add(&self, to: &mut Schedule) -> Vec<DeviceModel> {
        device_model::add(&self.file, &self.devices, to)
    }

    /// What a node tells of its devices.
    pub fn infos(&self) -> Vec<DeviceInfo> {
        let models = self.add(&mut Schedule::default());
        let mut devices: Vec<DeviceInfo> = models.iter().map(info).collect();
        share_bus(&mut devices, self.file.host.bus_bandwidth);
        devices
    }
}

/// What a node tells of a device, which computes in single precision.
fn info(model: &DeviceModel) -> DeviceInfo {
    let device = &model.device;
    DeviceInfo {
        name: device.name.clone(),
        flops: model.flops("", false).unwrap_or(f64::INFINITY),
        memory_bandwidth: model.memory_bandwidth(),
        link_bandwidth: device.link_bandwidth.unwrap_or(f64::INFINITY),
        depth: if device.shares_host_memory { 1 } else { DEPTH },
    }
}

/// The busiest of all devices, links and drivers of a run that took so many seconds; none
/// if it took no time. Of equally busy ones it is the first.
fn busiest(
    nodes: &[Node],
    fluid: &Fluid,
    switch: Option<bandwidth_sharing::Resource>,
    seconds: f64,
) -> Option<Busiest> {
    let all = nodes.iter().enumerate().flat_map(|(rank, node)| {
        let shares_link = node.out == node.into;
        of_node(rank as u32, node).chain([
            (Resource::LinkOut(rank as u32), fluid.seconds(node.out)),
            (
                Resource::LinkIn(rank as u32),
                if shares_link {
                    0.0
                } else {
                    fluid.seconds(node.into)
                },
            ),
        ])
    });
    let switch = switch.map(|switch| (Resource::Switch, fluid.seconds(switch)));
    most(all.chain(switch)).map(|(resource, busy)| Busiest {
        resource,
        // A kernel whose result is not wanted any more may end after the run.
        share: (busy / seconds).min(1.0),
    })
}

/// The first of those with the greatest value above 0.
fn most(all: impl Iterator<Item = (Resource, f64)>) -> Option<(Resource, f64)> {
    let busy = all.filter(|(_, seconds)| *seconds > 0.0);
    busy.reduce(|most, other| if other.1 > most.1 { other } else { most })
}

/// The devices and the driver of a node, with the seconds in which each was busy.
fn of_node(rank: u32, node: &Node) -> impl Iterator<Item = (Resource, f64)> {
    let seconds = |ns: u64| ns as f64 * 1e-9;
    let devices = node.devices.iter().flat_map(move |device| {
        let name = || device.info.name.clone();
        let [copies_in, copies_out] = device.copying;
        [
            (Resource::Device(rank, name()), seconds(device.busy)),
            (
                Resource::DeviceLink(rank, name()),
                seconds(copies_in.max(copies_out)),
            ),
        ]
    });
    let handling = node.handling.iter().copied().fold(0, Nanos::max);
    devices.chain([(Resource::Driver(rank), seconds(handling))])
}

/// A chain with its tasks.
#[derive(Clone)]
struct SimulatedChain {
    pub chain: Arc<Chain>,
    pub tasks: Arc<[Arc<dyn Computed>]>,
}

/// A subtask's kernel.
struct SubtaskKernel {
    cost: Cost,
    launch: SubtaskLaunch,
    /// Kernels that a GPU launches for it.
    launches: u64,
}

/// How many kernels a GPU launches for a subtask.
fn launches(task: &dyn Computed, subtask: u64, launch: &SubtaskLaunch, spaces: &Spaces) -> u64 {
    let Some(kernel) = launch.codelet.opencl.as_ref().filter(|of| of.is_series()) else {
        return 1;
    };
    let shape = |part: &SpaceBlock| (part.block.width(), spaces.extent(part.space).element);
    let reads = task.read_arguments(subtask);
    let reads = reads.iter().filter_map(|read| read.parts.first());
    let blocks: Vec<_> = (reads.chain(&task.writes(subtask)).map(shape)).collect();
    let memories: Vec<Memory> = (blocks.iter())
        .map(|_| Memory::Host(HostMemoryId::fresh()))
        .collect();
    let values = launch.values.iter();
    let values = values.map(|value| value.compact(&memories, &blocks));
    let values = values.collect();
    kernel.launches(&launch.units, &task.arguments(subtask, memories, values))
}

impl SubtaskKernel {
    /// The kernel of a subtask.
    pub fn of(task: &dyn Computed, subtask: u64, spaces: &Spaces) -> Self {
        let launch = task.launch(subtask);
        Self {
            cost: task.cost(subtask),
            launches: launches(task, subtask, &launch, spaces),
            launch,
        }
    }

    pub fn codelet(&self) -> &Codelet {
        &self.launch.codelet
    }

    /// What a device needs to know for its time.
    pub fn demand(&self) -> KernelDemand<'_> {
        KernelDemand {
            launches: self.launches,
            ..KernelDemand::of(&self.launch.codelet, &self.launch.units, self.cost)
        }
    }
}

/// Tasks by number. A workload may have millions, so each is made when a node begins its chain.
struct Tasks<'a> {
    workload: &'a dyn ClusterWorkload,
    spaces: Vec<SpaceId>,
    /// The chain that was made last, and the number of its first task. Most nodes begin the
    /// same chain as the node before.
    made: Option<(u64, SimulatedChain)>,
}

impl<'a> Tasks<'a> {
    /// The tasks of a workload on its spaces.
    pub fn of(workload: &'a dyn ClusterWorkload, spaces: Vec<SpaceId>) -> Self {
        Self {
            workload,
            spaces,
            made: None,
        }
    }

    /// The number of tasks.
    pub fn count(&self) -> u64 {
        self.workload.tasks()
    }

    /// The chain that begins with a task; none after the last one.
    pub fn chain(&mut self, number: u64) -> Option<SimulatedChain> {
        if let Some((made, chain)) = &self.made
            && *made == number
        {
            return Some(chain.clone());
        }
        if number >= self.count() {
            return None;
        }
        let get = |number| self.workload.task(number, &self.spaces);
        let first = get(number);
        let mut chaining = Chaining::new(Arc::clone(&first) as Arc<dyn Task>);
        let mut tasks = vec![first];
        let mut next = number + 1;
        // The blocks of a task may depend on bytes that are known when those before it have
        // ended.
        while next < self.count() && self.workload.depends(next).is_none() {
            let task = get(next);
            if !chaining.push(&(Arc::clone(&task) as Arc<dyn Task>)) {
                break;
            }
            tasks.push(task);
            next += 1;
        }
        let chain = SimulatedChain {
            chain: Arc::new(chaining.build()),
            tasks: tasks.into(),
        };
        self.made = Some((number, chain.clone()));
        Some(chain)
    }
}

/// What happens at a node.
pub enum SimulatedEvent {
    Event(Event),
    /// Its driver has enqueued the commands of a subtask, whose kernel needs this.
    Enqueued(Box<(Begun, Demand)>),
    Done(Begun),
    Begin,
    /// Its devices and their links have this fraction of their speed from now on.
    Slowed(f64),
}

/// All that is planned.
#[derive(Default)]
struct Events {
    /// By time, then by when it was planned: the node, and what happens there.
    all: BTreeMap<(Nanos, u64), (usize, SimulatedEvent)>,
    number: u64,
}

impl Events {
    /// Plans something. What is planned for the same moment happens in the order of the
    /// calls.
    pub fn plan(&mut self, at: Nanos, node: usize, event: SimulatedEvent) {
        self.number += 1;
        self.all.insert((at, self.number), (node, event));
    }

    /// When something happens next.
    pub fn next_at(&self) -> Option<Nanos> {
        self.all.first_key_value().map(|((at, _), _)| *at)
    }

    /// When and at which node something happens next, and what.
    pub fn next(&mut self) -> Option<(Nanos, usize, SimulatedEvent)> {
        let ((at, _), (node, event)) = self.all.pop_first()?;
        Some((at, node, event))
    }
}

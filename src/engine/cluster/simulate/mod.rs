//! Tasks in a simulated cluster, with the same decisions as in a real one.
//!
//! One virtual clock; nodes are the state machines of [`pdawl_core::cluster::protocol`]. Their
//! devices, links and the switch are those of [`crate::runtime::sim`]: one schedule has the
//! commands of all devices and the transfers between nodes, which share bandwidth in one
//! [fluid](crate::runtime::sim::bandwidth_sharing). A node's driver handles one message after
//! the other. Contents are not simulated, and neither is what stays in a device's memory: a
//! subtask copies all that it reads to its device, and its result back.

mod bands;
mod busiest;
mod device;
mod events;
mod machines;
mod node;
mod outcome;
mod tasks;
#[cfg(test)]
mod tests;
mod workload;
mod world;

use std::sync::Arc;
use std::time::Duration;

use tasks::{Source, Tasks};
use thiserror::Error;

pub use bands::simulate_bands;
pub use machines::{Computing, NodeMachine};
pub use workload::simulate_workload;

use crate::machine::cluster::NetworkSpec;
use crate::machine::{ClusterFile, MachineError, MachineStore};
use crate::spread::{NamedSpread, Network as Assumed, Requests};
use crate::time::Nanos;
use pdawl_core::cluster::NodeId;
use pdawl_core::cluster::info::NodeInfo;
use pdawl_core::cluster::protocol::{Counts, Settings};
use pdawl_core::cluster::record::{CommandRecord, DevicePart, TaskRecord};
use pdawl_core::cluster::space::Spaces;
use pdawl_core::cluster::task::Task;

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

/// A node is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    pub node: NodeId,
    pub at: Nanos,
}

/// What happens in a run beside its tasks.
#[derive(Clone, Debug)]
pub struct Options {
    pub spread: NamedSpread,
    /// What nodes assume of the wires is taken from the cluster.
    pub settings: Settings,
    /// Part of a device's operations a second that kernels reach. Policies do not know it.
    pub efficiency: f64,
    /// Relative standard deviation of the time of a subtask's commands.
    pub noise: f64,
    /// Of random times and choices.
    pub seed: u64,
    pub slowdowns: Vec<Slowdown>,
    pub losses: Vec<Loss>,
    /// From a loss until the coordinator knows.
    pub detection: Nanos,
    /// Whether the report has what devices did, for a trace.
    pub traces: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            spread: NamedSpread::default(),
            settings: Settings::default(),
            efficiency: 1.0,
            noise: 0.0,
            seed: 1,
            slowdowns: Vec::new(),
            losses: Vec::new(),
            detection: 1_000_000_000,
            traces: false,
        }
    }
}

/// What a node did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeRow {
    /// What became of its subtasks.
    pub counts: Counts,
    /// Seconds of all its devices' kernels.
    pub busy: f64,
    /// Seconds of all its devices without a kernel.
    pub idle: f64,
    /// Seconds in which a subtask was on at least one of its devices.
    pub computing: f64,
    pub devices: Vec<DevicePart>,
    /// Whether it was lost.
    pub lost: bool,
    /// Bytes that it received and sent.
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// What its devices did, where the run is traced.
    pub commands: Vec<CommandRecord>,
}

/// A simulated run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// From the first task's begin to the last one's end.
    pub seconds: f64,
    pub nodes: Vec<NodeRow>,
    pub requests: Requests,
    /// How often the tasks began anew since a node was lost with their data.
    pub restarts: u64,
    /// What was busy for the greatest part of the run; none if nothing was.
    pub busiest: Option<Busiest>,
    pub messages: u64,
    /// Real time that node 0 took to decide.
    pub decided: Duration,
    /// When node 0 began and ended its tasks, where the run is traced.
    pub timeline: Vec<TaskRecord>,
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

/// Runs tasks one after the other.
///
/// # Errors
/// Options that name nodes which are not there, and runs that fail, as those in which node
/// 0 is lost.
pub fn simulate(
    cluster: &Cluster,
    spaces: &Spaces,
    tasks: &[Arc<dyn Task>],
    options: &Options,
) -> Result<Report, SimulateError> {
    run(cluster, spaces, Source::Given(tasks), options)
}

fn run(
    cluster: &Cluster,
    spaces: &Spaces,
    tasks: Source,
    options: &Options,
) -> Result<Report, SimulateError> {
    let count = cluster.nodes.len();
    let slowed = options.slowdowns.iter().map(|s| (s.node, "slow"));
    let lost = options.losses.iter().map(|loss| (loss.node, "lose"));
    if let Some((node, what)) = slowed.chain(lost).find(|(node, _)| node.index() >= count) {
        let node = node.0;
        return Err(SimulateError::Node { node, what, count });
    }
    world::World::new(cluster, spaces, Tasks::of(tasks), options).run()
}

//! A simulated node.

use super::device::Device;
use super::machines::NodeMachine as Machine;
use super::tasks::SimulatedChain;
use super::{Cluster, Options};
use crate::runtime::sim::bandwidth_sharing::Resource;
use crate::runtime::sim::schedule::Schedule;
use crate::time::Nanos;
use pdawl_core::cluster::NodeId;
use pdawl_core::cluster::info::NodeInfo;
use pdawl_core::cluster::protocol::{NodeMachine, Settings};
use pdawl_core::cluster::record::NodeRecord;

/// A simulated node.
pub struct Node {
    pub machine: NodeMachine,
    pub devices: Vec<Device>,
    /// The task that it begins next, and the chain that it began last, with its first task.
    pub next: u64,
    pub chain: Option<SimulatedChain>,
    pub first: u64,
    pub computes: bool,
    pub ready: bool,
    /// When its driver has handled the messages that it sends and receives, and enqueued the
    /// commands of its devices.
    pub sends: Nanos,
    pub receives: Nanos,
    pub enqueues: Nanos,
    /// Nanoseconds in which it did each of these.
    pub handling: [Nanos; 3],
    /// Subtasks on its devices, and since when there have been some.
    pub running: u64,
    pub running_since: Nanos,
    pub out: Resource,
    pub into: Resource,
    pub record: NodeRecord,
}

impl Node {
    /// Node `me` of a cluster, with its devices and its links to the switch in the schedule.
    pub fn new(
        me: NodeId,
        machine: &Machine,
        cluster: &Cluster,
        options: &Options,
        schedule: &mut Schedule,
    ) -> Self {
        let spec = &cluster.network;
        let devices: Vec<Device> = machine.add(schedule).into_iter().map(Device::new).collect();
        let settings = Settings {
            network: cluster.assumed(),
            ..options.settings
        };
        let spread = (me == NodeId::FIRST).then(|| options.spread.spread(options.seed));
        let info = NodeInfo {
            name: me.to_string(),
            devices: devices.iter().map(|device| device.info.clone()).collect(),
        };
        let out = schedule.fluid().resource(spec.bandwidth);
        let into = if spec.full_duplex {
            schedule.fluid().resource(spec.bandwidth)
        } else {
            out
        };
        let (count, program) = (cluster.nodes.len() as u32, "simulated".to_owned());
        Self {
            machine: NodeMachine::new(me, count, program, info, settings, spread),
            devices,
            next: 0,
            chain: None,
            first: 0,
            computes: false,
            ready: false,
            sends: 0,
            receives: 0,
            enqueues: 0,
            handling: [0; 3],
            running: 0,
            running_since: 0,
            out,
            into,
            record: NodeRecord {
                name: machine.file.name.clone(),
                ..NodeRecord::default()
            },
        }
    }

    /// A subtask starts on a device.
    pub fn starts(&mut self, now: Nanos) {
        if self.running == 0 {
            self.running_since = now;
        }
        self.running += 1;
    }

    /// A subtask that has started on a device at `began` ends.
    pub fn ends(&mut self, device: usize, began: Nanos, now: Nanos) {
        self.devices[device].subtasks += 1;
        self.devices[device].took += now - began;
        self.running -= 1;
        if self.running == 0 {
            self.record.busy_seconds += (now - self.running_since) as f64 * 1e-9;
        }
    }

    /// Seconds until `now` in which a subtask was on at least one of its devices.
    pub fn computing(&self, now: Nanos) -> f64 {
        let still = match self.running {
            0 => 0,
            _ => now.saturating_sub(self.running_since),
        };
        self.record.busy_seconds + still as f64 * 1e-9
    }
}

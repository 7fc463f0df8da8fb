//! A simulated node.

use std::sync::Arc;

use super::device::{Device, DeviceModel, Speed};
use super::network::Network;
use super::{Cluster, NodeRow, Options};
use crate::cluster::NodeId;
use crate::cluster::info::NodeInfo;
use crate::cluster::protocol::{NodeMachine, Settings};
use crate::cluster::task::chain::Chain;
use crate::time::Nanos;

/// A simulated node.
pub struct Node {
    pub machine: NodeMachine,
    pub devices: Vec<Device>,
    pub speed: Speed,
    pub alive: bool,
    /// The task that it begins next, and the chain that it began last, with its first task.
    pub next: u64,
    pub chain: Option<Arc<Chain>>,
    pub first: u64,
    pub computes: bool,
    pub ready: bool,
    /// When its driver has handled the messages that it sends and receives.
    pub sends: Nanos,
    pub receives: Nanos,
    /// Nanoseconds in which it handled those that it sent, and those that it received.
    pub handling: [Nanos; 2],
    /// Subtasks on its devices, and since when there have been some.
    pub running: u64,
    pub running_since: Nanos,
    pub out: usize,
    pub into: usize,
    pub row: NodeRow,
}

impl Node {
    /// Node `me` of a cluster, with its links in the network.
    pub fn new(
        me: NodeId,
        devices: &[DeviceModel],
        cluster: &Cluster,
        options: &Options,
        network: &mut Network,
    ) -> Self {
        let spec = &cluster.network;
        let settings = Settings {
            network: cluster.assumed(),
            ..options.settings
        };
        let spread = (me == NodeId::FIRST).then(|| options.spread.spread(options.seed));
        let info = NodeInfo {
            name: me.to_string(),
            devices: devices.iter().map(|device| device.info.clone()).collect(),
        };
        let out = network.link(spec.bandwidth);
        let into = if spec.full_duplex {
            network.link(spec.bandwidth)
        } else {
            out
        };
        let mut speed = Speed::default();
        for slow in options.slowdowns.iter().filter(|slow| slow.node == me) {
            speed.change(slow.at, slow.fraction);
        }
        let (count, program) = (cluster.nodes.len() as u32, "simulated".to_owned());
        Self {
            machine: NodeMachine::new(me, count, program, info, settings, spread),
            devices: devices.iter().cloned().map(Device::new).collect(),
            speed,
            alive: true,
            next: 0,
            chain: None,
            first: 0,
            computes: false,
            ready: false,
            sends: 0,
            receives: 0,
            handling: [0; 2],
            running: 0,
            running_since: 0,
            out,
            into,
            row: NodeRow::default(),
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
            self.row.computing += (now - self.running_since) as f64 * 1e-9;
        }
    }

    /// Seconds until `now` in which a subtask was on at least one of its devices.
    pub fn computing(&self, now: Nanos) -> f64 {
        let still = match self.running {
            0 => 0,
            _ => now.saturating_sub(self.running_since),
        };
        self.row.computing + still as f64 * 1e-9
    }
}

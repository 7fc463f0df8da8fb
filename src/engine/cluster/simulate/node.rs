//! A simulated node.

use super::device::{Device, DeviceModel, Speed};
use super::network::Network;
use super::{Cluster, NodeRow, Options};
use crate::cluster::NodeId;
use crate::cluster::info::NodeInfo;
use crate::cluster::protocol::{NodeMachine, Settings};
use crate::spread::Network as Assumed;
use crate::time::Nanos;

/// A simulated node.
pub struct Node {
    pub machine: NodeMachine,
    pub devices: Vec<Device>,
    pub speed: Speed,
    pub alive: bool,
    /// The task that it begins next.
    pub next: usize,
    pub computes: bool,
    pub ready: bool,
    /// When its driver has handled the messages that it sends and receives.
    pub sends: Nanos,
    pub receives: Nanos,
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
            network: Assumed {
                bandwidth: spec.bandwidth,
                round_trip: 2 * (spec.latency_ns + 2 * spec.message_ns),
            },
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
            computes: false,
            ready: false,
            sends: 0,
            receives: 0,
            out,
            into,
            row: NodeRow::default(),
        }
    }
}

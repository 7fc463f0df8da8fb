//! What nodes tell of themselves: their devices.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::codelet::Cost;

/// All nodes. It is shared, as a message to every node has it.
pub type Nodes = Arc<[NodeInfo]>;

/// What a node tells of itself before the first task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeInfo {
    pub name: String,
    pub devices: Vec<DeviceInfo>,
    /// Bytes of its memory that a run may have.
    pub memory: u64,
}

/// How fast nodes are to each other: by the operations a second of their devices. Where these
/// are not known, all are alike.
pub fn speeds(nodes: &[NodeInfo]) -> Vec<f64> {
    let flops = |node: &NodeInfo| node.devices.iter().map(|device| device.flops).sum();
    let flops: Vec<f64> = nodes.iter().map(flops).collect();
    match flops.iter().all(|&speed| speed > 0.0 && speed.is_finite()) {
        true => flops,
        false => vec![1.0; nodes.len()],
    }
}

/// What scheduling knows of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    pub name: String,
    /// Seconds that subtasks of a cost are expected to take, before any was measured:
    /// operations a second, bytes a second of its memory, and of its link to the node's
    /// memory (infinite for the host's cores).
    #[serde(with = "crate::exact")]
    pub flops: f64,
    #[serde(with = "crate::exact")]
    pub memory_bandwidth: f64,
    #[serde(with = "crate::exact")]
    pub link_bandwidth: f64,
    /// Subtasks that may be on the device at once, so that its copies overlap.
    pub depth: u32,
}

impl DeviceInfo {
    /// The seconds that a subtask is expected to take when others follow it, which copies so
    /// many bytes to the device or from it: computing and memory overlap, and with a depth of
    /// two its copies overlap them, too.
    pub fn seconds(&self, cost: Cost, copied: f64) -> f64 {
        let compute = time(cost.flops, self.flops).max(time(cost.bytes, self.memory_bandwidth));
        let copies = self.copy_seconds(copied);
        match self.depth {
            0 | 1 => compute + copies,
            _ => compute.max(copies),
        }
    }

    /// The seconds in which so many bytes come over its link.
    pub fn copy_seconds(&self, bytes: f64) -> f64 {
        time(bytes, self.link_bandwidth)
    }
}

/// Devices whose links share a bus: each has a part of it while all copy.
pub fn share_bus(devices: &mut [DeviceInfo], bus: Option<f64>) {
    let has_link = |device: &&mut DeviceInfo| device.link_bandwidth < f64::MAX;
    let links = devices.iter_mut().filter(has_link).count();
    let part = bus.unwrap_or(f64::INFINITY) / links as f64;
    for device in devices.iter_mut().filter(has_link) {
        device.link_bandwidth = device.link_bandwidth.min(part);
    }
}

/// The seconds of an amount; none at a rate that is not known.
fn time(amount: f64, rate: f64) -> f64 {
    if rate > 0.0 { amount / rate } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_share_a_bus_that_is_slower_than_all_together() {
        let device = |link_bandwidth| DeviceInfo {
            name: String::new(),
            flops: 1.0,
            memory_bandwidth: 1.0,
            link_bandwidth,
            depth: 1,
        };
        let links = |bus| {
            let mut devices = [f64::MAX, 8.0, 3.0].map(device);
            share_bus(&mut devices, bus);
            devices.map(|device| device.link_bandwidth)
        };
        assert_eq!(links(Some(10.0)), [f64::MAX, 5.0, 3.0]);
        assert_eq!(links(Some(100.0)), [f64::MAX, 8.0, 3.0]);
        assert_eq!(links(None), [f64::MAX, 8.0, 3.0]);
    }
}

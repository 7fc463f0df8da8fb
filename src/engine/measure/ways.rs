//! Measures the ways of data alone: what estimates need of a machine that nobody has measured.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::probe::Probe;
use super::{MeasureError, MeasureOptions, device, host};
use crate::codelet::{Memory, copy};
use crate::machine::{Device, LinkSpec, MachineFile, PeerSpec};
use crate::runtime::{DeviceId, Runtime};

/// Long enough for a link's bandwidth, and short enough for a first run.
const BYTES: u64 = 64 << 20;
const REPEATS: u32 = 3;

/// The links of devices by name, copies between them, and the memory that they meet in.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ways {
    pub links: BTreeMap<String, LinkSpec>,
    pub peers: Vec<PeerSpec>,
    /// Bytes a second of the host's memory, for cores and links together.
    #[serde(default)]
    pub host_bandwidth: Option<f64>,
}

impl From<&MachineFile> for Ways {
    fn from(file: &MachineFile) -> Self {
        let links = file.devices.iter();
        let links = links.filter_map(|device| Some((device.name.clone(), device.link.clone()?)));
        Self {
            links: links.collect(),
            peers: file.peers.clone(),
            host_bandwidth: Some(file.host.shared()),
        }
    }
}

impl Ways {
    /// Measures those of all devices with memory of their own.
    ///
    /// # Errors
    /// As [`super::measure`].
    pub fn measure(runtime: &mut dyn Runtime) -> Result<Self, MeasureError> {
        let devices = runtime.devices().iter().enumerate();
        let own = devices.filter(|(_, device)| !device.shares_host_memory);
        let own: Vec<DeviceId> = own.map(|(id, _)| DeviceId(id)).collect();
        let pool = super::pool(runtime.devices());
        let Some(first) = own.first() else {
            return Ok(Self::default());
        };
        let options = MeasureOptions {
            bytes: BYTES,
            repeats: REPEATS,
        };
        let mut probe = Probe::on(runtime, Arc::new(copy::codelet()), options);
        let memory = probe.allocate(*first)?;
        let mut links = BTreeMap::new();
        for id in &own {
            let bytes = probe.size(*id, 8)?.min(memory.bytes);
            let buffer = probe.buffer(*id, bytes)?;
            let (link, _) = device::measure_link(&mut probe, *id, &memory, buffer, bytes)?;
            probe.free_queues();
            probe.free_buffers();
            links.insert(probe.device(*id).name.clone(), link);
        }
        let silent = &mut |_: &str, _: &str| {};
        let peers = device::measure_peers(&mut probe, &own, silent)?;
        let host_bandwidth = match pool {
            Some(pool) => {
                let (from, to) = (Memory::Host(memory.from), Memory::Host(memory.to));
                let (copy, traffic) = probe.large_copy(from, to, memory.bytes);
                let queue = probe.queue(pool)?;
                let alone = probe.rate(queue, &copy, traffic)?;
                host::measure_shared(&mut probe, pool, &own, &memory, alone, silent)?
            }
            None => None,
        };
        Ok(Self {
            links,
            peers,
            host_bandwidth,
        })
    }

    /// Whether the links of all devices with memory of their own are known.
    pub fn has_all(&self, devices: &[Device]) -> bool {
        let mut own = devices.iter().filter(|device| !device.shares_host_memory);
        own.all(|device| self.links.contains_key(&device.name))
    }

    /// Takes over what others have measured later.
    pub fn extend(&mut self, later: &Self) {
        self.links.extend(later.links.clone());
        let is_other = |peer: &PeerSpec| {
            (later.peers.iter()).all(|new| (&new.from, &new.to) != (&peer.from, &peer.to))
        };
        self.peers.retain(is_other);
        self.peers.extend(later.peers.iter().cloned());
        self.host_bandwidth = later.host_bandwidth.or(self.host_bandwidth);
    }
}

//! Measures the ways of data alone: what estimates need of a machine that nobody has measured.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::probe::Probe;
use super::{MeasureError, MeasureOptions, device};
use crate::codelet::copy;
use crate::machine::{Device, LinkSpec, MachineFile, PeerSpec};
use crate::runtime::{DeviceId, Runtime};

/// Long enough for a link's bandwidth, and short enough for a first run.
const BYTES: u64 = 64 << 20;
const REPEATS: u32 = 3;

/// The links of devices by name, and copies between them.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ways {
    pub links: BTreeMap<String, LinkSpec>,
    pub peers: Vec<PeerSpec>,
}

impl From<&MachineFile> for Ways {
    fn from(file: &MachineFile) -> Self {
        let links = file.devices.iter();
        let links = links.filter_map(|device| Some((device.name.clone(), device.link.clone()?)));
        Self {
            links: links.collect(),
            peers: file.peers.clone(),
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
        let peers = device::measure_peers(&mut probe, &own, &mut |_, _| {})?;
        Ok(Self { links, peers })
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
    }
}

//! The machines of a simulated cluster, and which of their devices compute.

use std::sync::Arc;

use crate::cluster::DEPTH;
use crate::machine::MachineFile;
use crate::runtime::sim::Selected;
use crate::runtime::sim::device_model::{self, DeviceModel};
use crate::runtime::sim::schedule::Schedule;
use pdawl_core::cluster::info::DeviceInfo;

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
        self.add(&mut Schedule::default())
            .iter()
            .map(info)
            .collect()
    }
}

/// What a node tells of a device, which computes in single precision.
pub fn info(model: &DeviceModel) -> DeviceInfo {
    let device = &model.device;
    DeviceInfo {
        name: device.name.clone(),
        flops: model.flops(false).unwrap_or(f64::INFINITY),
        memory_bandwidth: model.memory_bandwidth(),
        link_bandwidth: device.link_bandwidth.unwrap_or(f64::INFINITY),
        depth: if device.shares_host_memory { 1 } else { DEPTH },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::MachineStore;

    #[test]
    fn nodes_tell_what_their_machine_file_says() {
        let file = Arc::new(MachineStore::at("/nonexistent").find("m2070x2").unwrap());
        let names = |computing| -> Vec<String> {
            let machine = NodeMachine::new(Arc::clone(&file), computing);
            machine.infos().into_iter().map(|info| info.name).collect()
        };
        assert_eq!(names(Computing::All), ["host", "gpu0", "gpu1"]);
        assert_eq!(names(Computing::Gpus), ["gpu0", "gpu1"]);
        assert_eq!(names(Computing::Host), ["host"]);
        let infos = NodeMachine::new(Arc::clone(&file), Computing::All).infos();
        // Of single precision; the host's is twice that of doubles.
        assert_eq!((infos[0].flops, infos[1].flops), (256e9, 1030e9));
        assert_eq!((infos[0].depth, infos[1].depth), (1, DEPTH));
        assert_eq!(infos[0].link_bandwidth, f64::INFINITY);
        assert_eq!(infos[1].link_bandwidth, 4.6e9);
        assert_eq!(infos[1].memory_bandwidth, 115e9);
    }
}

//! The machine of a run.

use schemars::JsonSchema;
use serde::Serialize;

use crate::machine::{Device, Host, MachineFile};
use crate::runtime::Comparison;

/// The machine of a run.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Machine {
    /// Of a simulated run over nodes, the name of the cluster.
    pub name: String,
    /// Whether times, rates and bandwidths are virtual, from the simulator, rather than
    /// measured.
    pub simulated: bool,
    /// The host; over nodes, that of the first one.
    pub host: HostInfo,
    /// The devices of the run; over nodes, those of the first one, if it is real.
    pub devices: Vec<Device>,
    /// Codelets of the run that had two implementations on a GPU, our kernels and a library's
    /// calls, and which one serves; empty without such devices.
    pub implementations: Vec<Comparison>,
}

/// The host of a machine.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct HostInfo {
    /// Model of the processor.
    pub cpu: String,
    /// Cores that may be used.
    pub cores: u32,
    /// Of the host.
    pub memory: u64,
}

impl Machine {
    /// The machine that the program runs on.
    pub fn real(name: String, host: Host, devices: Vec<Device>) -> Self {
        Self {
            name,
            simulated: false,
            host: HostInfo {
                cpu: host.model,
                cores: host.cores.len() as u32,
                memory: host.memory.total(),
            },
            devices,
            implementations: Vec::new(),
        }
    }

    /// A simulated machine.
    pub fn simulated(file: &MachineFile, devices: Vec<Device>) -> Self {
        Self {
            name: file.name.clone(),
            simulated: true,
            host: HostInfo {
                cpu: file.host.model.clone(),
                cores: file.host.cores,
                memory: file.host.memory,
            },
            devices,
            implementations: Vec::new(),
        }
    }
}

//! The devices that may take part in a run, before they are configured.

use std::sync::Arc;

use crate::engine::corun::memory::memory_limit;
use crate::machine::{Device, DeviceKind, DeviceSpec, MachineFile, RuntimeKind};
use crate::model::StepTime;

/// A device, and the predictor of its steps.
#[derive(Clone)]
pub struct CandidateDevice {
    /// As the user names it.
    pub name: String,
    pub kind: DeviceKind,
    /// Cores of a CPU, multiprocessors of a GPU.
    pub compute_units: u32,
    pub memory: MemoryKind,
    pub time: Arc<dyn StepTime>,
}

/// The memory that a device computes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// In host memory, as a pool with any number of workers up to the compute units.
    HostPool,
    /// In host memory, with all compute units.
    HostShared,
    /// In device memory: bytes of it that may be used, and the largest single
    /// allocation.
    Discrete { limit: u64, largest: u64 },
}

impl CandidateDevice {
    /// A device of a runtime. `gpu_memory` is the most to use of a memory of
    /// its own, as in [`crate::engine::corun::Options`].
    pub fn of(device: &Device, gpu_memory: Option<u64>, time: Arc<dyn StepTime>) -> Self {
        let is_a_pool = device.kind == DeviceKind::Cpu && device.runtime != RuntimeKind::Opencl;
        let memory = match (device.shares_host_memory, is_a_pool) {
            (false, _) => MemoryKind::Discrete {
                limit: memory_limit(device.memory, gpu_memory),
                largest: device.max_allocation,
            },
            (true, true) => MemoryKind::HostPool,
            (true, false) => MemoryKind::HostShared,
        };
        Self {
            name: device.name.clone(),
            kind: device.kind,
            compute_units: device.compute_units,
            memory,
            time,
        }
    }

    /// All cores of a described machine, as one pool.
    pub fn host(machine: &MachineFile, time: Arc<dyn StepTime>) -> Self {
        Self {
            name: "host".to_owned(),
            kind: DeviceKind::Cpu,
            compute_units: machine.host.cores,
            memory: MemoryKind::HostPool,
            time,
        }
    }

    /// A device of a described machine.
    pub fn device(device: &DeviceSpec, gpu_memory: Option<u64>, time: Arc<dyn StepTime>) -> Self {
        let memory = match device.shares_host_memory {
            true => MemoryKind::HostShared,
            false => MemoryKind::Discrete {
                limit: memory_limit(device.memory, gpu_memory),
                largest: device.memory,
            },
        };
        Self {
            name: device.name.clone(),
            kind: device.kind,
            compute_units: device.compute_units,
            memory,
            time,
        }
    }
}

//! Who may take part in a run, before it is said how.

use std::sync::Arc;

use crate::engine::corun::place::memory_limit;
use crate::machine::{Device, DeviceKind, DeviceSpec, MachineFile, RuntimeKind};
use crate::model::StepTime;

/// A device, and what predicts it.
#[derive(Clone)]
pub struct Member {
    /// As the user names it.
    pub name: String,
    pub kind: DeviceKind,
    /// Cores of a CPU, multiprocessors of a GPU.
    pub compute_units: u32,
    pub seat: Seat,
    pub time: Arc<dyn StepTime>,
}

/// Where a device computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// On host memory, as a pool whose number of workers may be chosen, up to
    /// the compute units.
    Pool,
    /// On host memory, as it is.
    Shared,
    /// In memory of its own: bytes that may be used of it, and the largest
    /// single allocation.
    Own { limit: u64, largest: u64 },
}

impl Member {
    /// A device of a runtime. `gpu_memory` is the most to use of a memory of
    /// its own, as in [`crate::engine::corun::Options`].
    pub fn of(device: &Device, gpu_memory: Option<u64>, time: Arc<dyn StepTime>) -> Self {
        let is_a_pool = device.kind == DeviceKind::Cpu && device.runtime != RuntimeKind::Opencl;
        let seat = match (device.shares_host_memory, is_a_pool) {
            (false, _) => Seat::Own {
                limit: memory_limit(device.memory, gpu_memory),
                largest: device.max_allocation,
            },
            (true, true) => Seat::Pool,
            (true, false) => Seat::Shared,
        };
        Self {
            name: device.name.clone(),
            kind: device.kind,
            compute_units: device.compute_units,
            seat,
            time,
        }
    }

    /// All cores of a described machine, as one pool.
    pub fn host(machine: &MachineFile, time: Arc<dyn StepTime>) -> Self {
        Self {
            name: "host".to_owned(),
            kind: DeviceKind::Cpu,
            compute_units: machine.host.cores,
            seat: Seat::Pool,
            time,
        }
    }

    /// A device of a described machine.
    pub fn device(device: &DeviceSpec, gpu_memory: Option<u64>, time: Arc<dyn StepTime>) -> Self {
        let seat = match device.shares_host_memory {
            true => Seat::Shared,
            false => Seat::Own {
                limit: memory_limit(device.memory, gpu_memory),
                largest: device.memory,
            },
        };
        Self {
            name: device.name.clone(),
            kind: device.kind,
            compute_units: device.compute_units,
            seat,
            time,
        }
    }
}

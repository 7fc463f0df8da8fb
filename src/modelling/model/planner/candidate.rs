//! The devices that may take part in a run, each with what predicts its steps: a trained
//! model or the machine's file alone.

use std::sync::Arc;

use pdawl_profiler::bundle::Bundle;
use thiserror::Error;

use crate::engine::corun::memory::memory_limit;
use crate::machine::{Device, DeviceKind, DeviceSpec, MachineFile, RuntimeKind};
use crate::model::{Descriptors, Physics, Predictor, PredictorError, StepTime};

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

/// A machine, a model of it, and the codelet to predict.
#[derive(Clone, Copy, Debug)]
pub struct ModelledMachine<'a> {
    pub bundle: &'a Bundle,
    pub machine: &'a MachineFile,
    /// The codelet's name, and whether it computes in double precision.
    pub codelet: &'a str,
    pub fp64: bool,
    /// Most bytes to use of a device's own memory; `None`: what it has.
    pub gpu_memory: Option<u64>,
}

/// The errors of modelling a device.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CandidateError {
    #[error(
        "device `{device}` ({model}) is not in the file of machine {machine}, so nothing is known \
         of it before a run; measure the machine again: pdawl machine save {machine}"
    )]
    Undescribed {
        device: String,
        model: String,
        machine: String,
    },
    #[error(transparent)]
    Predictor(#[from] PredictorError),
}

impl ModelledMachine<'_> {
    /// The host's cores as one pool, then every device of the machine that
    /// computes in the precision: what a simulation of it has.
    ///
    /// # Errors
    /// When the model has nothing for one of them.
    pub fn described(&self) -> Result<Vec<CandidateDevice>, CandidateError> {
        let mut candidates = vec![CandidateDevice::host(self.machine, self.time(None)?)];
        for device in self.machine.devices.iter().filter(|d| d.fp64 || !self.fp64) {
            let time = self.time(Some(device))?;
            candidates.push(CandidateDevice::device(device, self.gpu_memory, time));
        }
        Ok(candidates)
    }

    /// The host's cores as one pool, then these devices.
    ///
    /// # Errors
    /// As [`Self::running`].
    pub fn beside_host(&self, devices: &[Device]) -> Result<Vec<CandidateDevice>, CandidateError> {
        let mut candidates = vec![CandidateDevice::host(self.machine, self.time(None)?)];
        candidates.extend(self.running(devices)?);
        Ok(candidates)
    }

    /// The devices of a runtime, in their order.
    ///
    /// # Errors
    /// When the machine's file does not know one of them, or the model has
    /// nothing for it.
    pub fn running(&self, devices: &[Device]) -> Result<Vec<CandidateDevice>, CandidateError> {
        running(self.machine, devices, self.gpu_memory, |spec| {
            let time: Arc<dyn StepTime> = self.time(spec)?;
            Ok(time)
        })
    }

    fn time(&self, device: Option<&DeviceSpec>) -> Result<Arc<Predictor>, PredictorError> {
        let descriptors = Descriptors::of(self.machine, device, self.codelet, self.fp64);
        Predictor::new(self.bundle, self.codelet, descriptors).map(Arc::new)
    }
}

/// The devices of a runtime, in their order, as the machine's file describes them and without
/// a trained model.
///
/// # Errors
/// When the file does not know one of them.
pub fn physical(
    machine: &MachineFile,
    devices: &[Device],
    (codelet, fp64): (&str, bool),
    gpu_memory: Option<u64>,
) -> Result<Vec<CandidateDevice>, CandidateError> {
    running(machine, devices, gpu_memory, |spec| {
        let descriptors = Descriptors::of(machine, spec, codelet, fp64);
        Ok(Arc::new(Physics(descriptors)))
    })
}

/// The devices of a runtime, in their order, with a predictor for the entry of each in the
/// machine's file; for none of a host's cores.
fn running(
    machine: &MachineFile,
    devices: &[Device],
    gpu_memory: Option<u64>,
    time: impl Fn(Option<&DeviceSpec>) -> Result<Arc<dyn StepTime>, CandidateError>,
) -> Result<Vec<CandidateDevice>, CandidateError> {
    let mut candidates = Vec::new();
    for (place, device) in devices.iter().enumerate() {
        let is_pool = device.kind == DeviceKind::Cpu && device.runtime != RuntimeKind::Opencl;
        let spec = match is_pool {
            true => None,
            false => Some(spec(machine, device, &devices[..place])?),
        };
        candidates.push(CandidateDevice::of(device, gpu_memory, time(spec)?));
    }
    Ok(candidates)
}

/// The entry of a device in the machine file: by its name or else by its model, where the
/// devices `before` it have taken earlier entries.
fn spec<'m>(
    machine: &'m MachineFile,
    device: &Device,
    before: &[Device],
) -> Result<&'m DeviceSpec, CandidateError> {
    let alike = before.iter().filter(|d| d.model == device.model).count();
    let all = &machine.devices;
    (all.iter().find(|spec| spec.name == device.name))
        .or_else(|| all.iter().filter(|s| s.model == device.model).nth(alike))
        .ok_or_else(|| CandidateError::Undescribed {
            device: device.name.clone(),
            model: device.model.clone(),
            machine: machine.name.clone(),
        })
}

//! The machine under profile: this machine, or a simulated one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use pdawl_profiler::telemetry::{self, Absent, Sensor, Telemetry};

use super::configuration::{DeviceUse, Setting};
use super::design::Gpu;
use super::error::ProfileError;
use crate::engine::corun::memory::memory_limit;
use crate::machine::host::{Topology, allowed_cores};
use crate::machine::{Device, DeviceKind, DeviceSpec, MachineFile};
use crate::runtime::select::{self, Selection};
use crate::runtime::sim::{Sim, SimDevice, SimOptions};
use crate::runtime::union::Union;
use crate::runtime::{Runtime, RuntimeError};

/// A machine to profile, and its description.
pub struct ProfiledMachine {
    machine: MachineFile,
    topology: Topology,
    execution: Execution,
}

enum Execution {
    Real(Real),
    /// Relative standard deviation of times.
    Simulated {
        noise: f64,
    },
}

/// This machine.
struct Real {
    /// The devices other than the host's cores, each with the name of its entry in the
    /// machine's description.
    devices: Vec<(Device, String)>,
    /// Runtimes by their selection: building kernels takes longer than most
    /// runs.
    open: HashMap<String, Union>,
    /// Asked for when a GPU first runs.
    telemetry: Option<Result<Telemetry, Absent>>,
    /// Notes from opening the devices and their sensors.
    notes: Vec<String>,
}

impl ProfiledMachine {
    /// A simulated machine whose times vary by `noise`, a relative standard
    /// deviation.
    pub fn simulated(machine: MachineFile, noise: f64) -> Self {
        Self {
            topology: Topology::described(machine.host.sockets, machine.host.cores),
            machine,
            execution: Execution::Simulated { noise },
        }
    }

    /// This machine, as `machine` describes it, with the devices found on it
    /// beside the host's cores. A device that is not described is left out,
    /// and `notes` says so.
    pub fn real(machine: MachineFile, found: Vec<Device>) -> Self {
        let mut real = Real {
            devices: Vec::new(),
            open: HashMap::new(),
            telemetry: None,
            notes: Vec::new(),
        };
        for device in found {
            let entry = |of: &dyn Fn(&&DeviceSpec) -> bool| machine.devices.iter().find(of);
            let entry = entry(&|spec| spec.name == device.name)
                .or_else(|| entry(&|spec| spec.model == device.model));
            match entry {
                Some(spec) => real.devices.push((device, spec.name.clone())),
                None => real.notes.push(format!(
                    "{} ({}) is not profiled: machine {} has no figures of it; measure them with \
                     `pdawl machine save NAME`",
                    device.name, device.model, machine.name
                )),
            }
        }
        // The description leaves a core to the engine's thread, which would slow a
        // worker on the same core.
        let mut cores = allowed_cores(None);
        cores.truncate(machine.host.cores as usize);
        Self {
            topology: Topology::detect(&cores),
            machine,
            execution: Execution::Real(real),
        }
    }

    /// The machine's description.
    pub fn machine(&self) -> &MachineFile {
        &self.machine
    }

    /// Whether times are virtual.
    pub fn is_simulated(&self) -> bool {
        matches!(self.execution, Execution::Simulated { .. })
    }

    /// The topology of the cores that may be used.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Adds a note once.
    pub(super) fn note(&mut self, note: String) {
        if let Execution::Real(real) = &mut self.execution {
            note_once(&mut real.notes, note);
        }
    }

    /// The sensors of the GPU that a run uses, if it has any.
    pub(super) fn sensor(&mut self, device_use: &DeviceUse) -> Option<Arc<dyn Sensor>> {
        let Execution::Real(real) = &mut self.execution else {
            return None;
        };
        let is_it = |device: &Device| device.name == device_use.device;
        let index = real.devices.iter().position(|(device, _)| is_it(device))?;
        let model = real.devices[index].0.model.clone();
        let before = real.devices[..index].iter();
        let nth = before.filter(|(device, _)| device.model == model).count();
        let telemetry = real.telemetry.get_or_insert_with(Telemetry::open);
        let sensor = match telemetry {
            Ok(telemetry) => telemetry.sensor(&telemetry::Gpu {
                model: model.clone(),
                nth,
            }),
            Err(absent) => {
                let note = without_telemetry(&model, absent);
                note_once(&mut real.notes, note);
                return None;
            }
        };
        match sensor {
            Ok(sensor) => Some(sensor),
            Err(absent) => {
                note_once(&mut real.notes, without_telemetry(&model, &absent));
                None
            }
        }
    }

    /// Notes on the devices, for the user.
    pub fn notes(&self) -> &[String] {
        match &self.execution {
            Execution::Real(real) => &real.notes,
            Execution::Simulated { .. } => &[],
        }
    }

    /// One device of each model that can be profiled in this precision, of
    /// whose memory at most `limit` bytes are used.
    pub fn gpus(&self, limit: Option<u64>, fp64: bool) -> Vec<Gpu> {
        let offers: Vec<(&str, Gpu)> = match &self.execution {
            Execution::Real(real) => (real.devices.iter())
                .filter(|(device, _)| device.fp64 || !fp64)
                .map(|(device, _)| (device.model.as_str(), found(device, limit)))
                .collect(),
            Execution::Simulated { .. } => (self.machine.devices.iter())
                .filter(|spec| spec.kind != DeviceKind::Cpu && (spec.fp64 || !fp64))
                .map(|spec| (spec.model.as_str(), described(spec, limit)))
                .collect(),
        };
        let mut gpus: Vec<(&str, Gpu)> = Vec::new();
        for (model, gpu) in offers {
            if gpus.iter().all(|(known, _)| *known != model) {
                gpus.push((model, gpu));
            }
        }
        gpus.into_iter().map(|(_, gpu)| gpu).collect()
    }

    /// The description of a device; `None` for the host's cores.
    pub fn spec(&self, device: &str) -> Option<&DeviceSpec> {
        let described = match &self.execution {
            Execution::Real(real) => {
                let found = real.devices.iter().find(|(found, _)| found.name == device);
                found.map(|(_, described)| described.as_str())?
            }
            Execution::Simulated { .. } => device,
        };
        self.machine.devices.iter().find(|d| d.name == described)
    }

    /// Calls `act` with a runtime of the use's device alone. A
    /// simulated one is new each time, and its noise follows from the seed.
    ///
    /// # Errors
    /// When the device cannot be opened.
    pub fn with<T>(
        &mut self,
        device_use: &DeviceUse,
        seed: u64,
        act: impl FnOnce(&mut dyn Runtime) -> T,
    ) -> Result<T, ProfileError> {
        let refused = |source| ProfileError::Open {
            device: device_use.selection(),
            source,
        };
        match &mut self.execution {
            Execution::Simulated { noise } => {
                let options = SimOptions {
                    seed,
                    noise: Some(*noise),
                    devices: Some(vec![simulated(device_use)]),
                    ..SimOptions::default()
                };
                let mut sim = Sim::new(&self.machine, options).map_err(refused)?;
                Ok(act(&mut sim))
            }
            Execution::Real(real) => Ok(act(real.open(device_use).map_err(refused)?)),
        }
    }

    /// Closes all runtimes: the next run opens its devices again.
    pub fn close(&mut self) {
        if let Execution::Real(real) = &mut self.execution {
            real.open.clear();
        }
    }
}

impl Real {
    fn open(&mut self, device_use: &DeviceUse) -> Result<&mut Union, RuntimeError> {
        let text = device_use.selection();
        if matches!(device_use.setting, Setting::Host { .. }) {
            // Starting threads is quick, and those of other pools would need
            // counters of their own.
            self.open
                .retain(|open, _| *open == text || !open.starts_with("host"));
        }
        let vacant = match self.open.entry(text) {
            Entry::Occupied(open) => return Ok(open.into_mut()),
            Entry::Vacant(vacant) => vacant,
        };
        let selection: Selection = vacant.key().parse()?;
        let fp64 = device_use.fp64;
        let (union, notes) = select::open_union(Some(&selection), fp64)?;
        for note in notes {
            note_once(&mut self.notes, note);
        }
        Ok(vacant.insert(union))
    }
}

fn found(device: &Device, limit: Option<u64>) -> Gpu {
    Gpu {
        name: device.name.clone(),
        compute_units: device.compute_units,
        memory: memory_limit(device.memory, limit),
        largest: device.max_allocation,
        own: !device.shares_host_memory,
    }
}

fn described(spec: &DeviceSpec, limit: Option<u64>) -> Gpu {
    Gpu {
        name: spec.name.clone(),
        compute_units: spec.compute_units,
        memory: memory_limit(spec.memory, limit),
        largest: spec.memory,
        own: !spec.shares_host_memory,
    }
}

fn without_telemetry(model: &str, absent: &Absent) -> String {
    format!("no telemetry of {model}: {absent}; {}", absent.remedy())
}

fn note_once(notes: &mut Vec<String>, note: String) {
    if !notes.contains(&note) {
        notes.push(note);
    }
}

fn simulated(device_use: &DeviceUse) -> SimDevice {
    match device_use.setting {
        Setting::Host { workers, .. } => SimDevice::Host {
            cores: Some(workers),
        },
        _ => SimDevice::Named(device_use.device.clone()),
    }
}

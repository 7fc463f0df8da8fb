//! The devices that a graph runs on.

use pdawl::machine::Host;
use pdawl::report::schema::{HostInfo, Machine};
use pdawl::runtime::Runtime;
use pdawl::runtime::select::Selection;
use pdawl::runtime::sim::{Sim, SimOptions};

use crate::cli::args::Place;
use crate::cli::failure::{Failure, refused, wrong_devices};
use crate::cli::here::fingerprint;
use crate::cli::session::ground::{Ground, Rig};
use crate::cli::session::{faults, machine_file, sim_devices};

/// Devices, real or simulated, and what a report tells of them.
pub struct Stage {
    ground: Ground,
    pub machine: Machine,
    pub notes: Vec<String>,
}

impl Stage {
    /// Opens what the user asked for. `fp64` says whether devices without double
    /// precision are left out; `data` and `seed` are a simulation's, and
    /// `levels` the steps at which its faults may happen.
    ///
    /// # Errors
    /// When there is no such machine or device.
    pub fn open(
        place: &Place,
        fp64: bool,
        data: bool,
        seed: u64,
        levels: u32,
    ) -> Result<Self, Failure> {
        if place.gpu_memory.is_some() || place.host_memory.is_some() {
            return Err(Failure::usage(
                "--gpu-memory and --host-memory are for workloads that are streamed; a graph \
                 takes the memory that its data need",
                "it without them",
            ));
        }
        if let Some(name) = &place.machine {
            let file = machine_file(name)?;
            let here = fingerprint();
            if !here.is(file.fingerprint.as_deref()) {
                let mut options = SimOptions {
                    seed,
                    noise: place.noise,
                    data,
                    faults: Vec::new(),
                    devices: place.devices.as_deref().map(sim_devices).transpose()?,
                };
                let sim = Sim::new(&file, options.clone()).map_err(refused)?;
                let devices = sim.devices().to_vec();
                options.faults = faults(&place.fault, &devices, (levels, "--layers"))?;
                let note = format!(
                    "every time is simulated: machine {} is not this one, which is {here}",
                    file.name
                );
                return Ok(Self {
                    machine: Machine {
                        name: file.name.clone(),
                        simulated: true,
                        host: HostInfo {
                            cpu: file.host.model.clone(),
                            cores: file.host.cores,
                            memory: file.host.memory,
                        },
                        devices,
                    },
                    ground: Ground::Simulated(Box::new(file), options),
                    notes: vec![note],
                });
            }
        }
        if !place.fault.is_empty() || place.noise.is_some() {
            return Err(Failure::usage(
                "--fault and --noise are for simulated machines, and this run is on real devices",
                "--machine NAME of another machine; `pdawl machine list` shows them",
            ));
        }
        let selection = (place.devices.as_deref())
            .map(str::parse::<Selection>)
            .transpose()
            .map_err(wrong_devices)?;
        let (mut rig, notes) = Rig::open(selection, fp64)?;
        let host = Host::detect();
        Ok(Self {
            machine: Machine {
                name: place.machine.clone().unwrap_or("this machine".into()),
                simulated: false,
                host: HostInfo {
                    cpu: host.model,
                    cores: host.cores.len() as u32,
                    memory: host.memory.total(),
                },
                devices: rig.as_asked()?.devices().to_vec(),
            },
            ground: Ground::Real(rig),
            notes,
        })
    }

    /// Does something with the devices. A simulation begins at its time 0.
    ///
    /// # Errors
    /// When they cannot be opened.
    pub fn with<T>(&mut self, act: impl FnOnce(&mut dyn Runtime) -> T) -> Result<T, Failure> {
        self.ground.with(None, &self.machine.devices, act)
    }
}

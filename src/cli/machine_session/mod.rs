//! A machine session: the devices that a command runs on, of this machine or of
//! a simulated one, and what reports say of the machine.
//!
//! [`NamedMachine`] is the machine that the user names. [`real`] opens devices of this
//! machine, [`KeptTimes`] has what earlier runs measured there, and [`simulated`] parses devices
//! and faults of simulated ones.

mod kept_times;
mod named;
mod real;
mod simulated;

use pdawl::machine::{Device, Host, MachineFile};
use pdawl::report::Machine;
use pdawl::runtime::sim::{Sim, SimOptions};
use pdawl::runtime::{Devices, Runtime};

pub use kept_times::KeptTimes;
pub use named::{NamedMachine, machine_file, only_simulated};

use super::args::MachineArgs;
use super::failure::{Failure, refused};
use super::fault::FaultSpec;
use real::RealDevices;
use simulated::{faults, sim_devices};

/// Open devices, which can run any number of workloads.
pub struct MachineSession {
    backend: Backend,
    /// The machine and its devices, for reports.
    pub machine: Machine,
    /// Notes for reports.
    pub notes: Vec<String>,
    /// Times of codelets' implementations on real GPUs.
    times: Option<KeptTimes>,
}

enum Backend {
    Real(RealDevices),
    /// Each run begins on a simulator of its own, at time 0.
    Simulated(Box<MachineFile>, SimOptions),
}

/// The requirements of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Whether devices without double precision are left out.
    pub fp64: bool,
    /// Whether a simulation computes data, so that results can be compared.
    pub data: bool,
    /// The seed of a simulation's noise.
    pub seed: u64,
}

impl MachineSession {
    /// Opens the devices that the user asked for: simulated ones if `named` is
    /// another machine than this one.
    ///
    /// # Errors
    /// When there is no such device, or it cannot be opened.
    pub fn open(
        args: &MachineArgs,
        named: Option<NamedMachine>,
        needs: Needs,
    ) -> Result<Self, Failure> {
        let named = match named {
            Some(named) if named.is_simulated() => return Self::simulate(args, named, needs),
            named => named,
        };
        let (mut real, mut notes) = RealDevices::open(args.devices.as_deref(), needs.fp64)?;
        let devices = real.runtime(None)?.devices().to_vec();
        // The file of this machine says how copies between them go.
        if devices.iter().filter(|d| !d.shares_host_memory).count() > 1
            && let Some(named) = named.or_else(NamedMachine::here)
        {
            real.connect(named.file.peers);
        }
        let times = KeptTimes::of(&devices, &mut notes);
        let name = args.machine.clone().unwrap_or("this machine".into());
        Ok(Self {
            machine: Machine::real(name, Host::detect(), devices),
            backend: Backend::Real(real),
            notes,
            times,
        })
    }

    fn simulate(args: &MachineArgs, named: NamedMachine, needs: Needs) -> Result<Self, Failure> {
        let note = named.simulated_note();
        let file = named.file;
        let options = SimOptions {
            seed: needs.seed,
            noise: args.noise,
            data: needs.data,
            graphs: false,
            faults: Vec::new(),
            devices: args.devices.as_deref().map(sim_devices).transpose()?,
        };
        Ok(Self {
            machine: Machine::simulated(&file, simulator(&file, &options)?.devices().to_vec()),
            backend: Backend::Simulated(Box::new(file), options),
            notes: vec![note],
            times: None,
        })
    }

    /// Keeps these devices, given as a list of names, and drops the others.
    ///
    /// # Errors
    /// When they cannot be opened.
    pub fn keep_only(&mut self, list: &str) -> Result<(), Failure> {
        self.machine.devices = match &mut self.backend {
            Backend::Real(real) => real.ask_for(list)?,
            Backend::Simulated(file, options) => {
                options.devices = Some(sim_devices(list)?);
                simulator(file, options)?.devices().to_vec()
            }
        };
        Ok(())
    }

    /// Injects faults into devices in runs of `steps.0` steps. `steps.1` is the option
    /// that makes a run longer.
    ///
    /// # Errors
    /// A device that takes no part, a step that the run does not reach, and what only
    /// simulated devices can have.
    pub fn inject(&mut self, specs: &[FaultSpec], steps: (u32, &str)) -> Result<(), Failure> {
        let devices = &self.machine.devices;
        match &mut self.backend {
            Backend::Real(real) => real.lose(specs, devices)?,
            Backend::Simulated(_, options) => options.faults = faults(specs, devices, steps)?,
        }
        Ok(())
    }

    /// The machine's file and the simulator's options, if it is simulated.
    pub fn simulation(&mut self) -> Option<(&MachineFile, &mut SimOptions)> {
        match &mut self.backend {
            Backend::Real(_) => None,
            Backend::Simulated(file, options) => Some((file, options)),
        }
    }

    /// Calls `act` with the devices; a simulation, which knows times without data, computes
    /// none meanwhile.
    ///
    /// # Errors
    /// As [`Self::with`].
    pub fn without_data<T>(
        &mut self,
        act: impl FnOnce(&mut dyn Runtime) -> T,
    ) -> Result<T, Failure> {
        let data = (self.simulation()).map(|(_, options)| std::mem::take(&mut options.data));
        let done = self.with(None, act);
        if let Some(((_, options), data)) = self.simulation().zip(data) {
            options.data = data;
        }
        done
    }

    /// Calls `act` with the devices. `cores` is the number of the host's cores to use
    /// instead of all; the host must then be the first device.
    ///
    /// # Errors
    /// When they cannot be opened so.
    pub fn with<T>(
        &mut self,
        cores: Option<u32>,
        act: impl FnOnce(&mut dyn Runtime) -> T,
    ) -> Result<T, Failure> {
        let list = cores.map(|cores| with_cores(cores, &self.machine.devices));
        match &mut self.backend {
            Backend::Real(real) => {
                let runtime = real.runtime(list.as_deref())?;
                if let Some(times) = &self.times {
                    times.hand_to(runtime);
                }
                let done = act(runtime);
                self.machine.implementations = runtime.implementations();
                if let Some(times) = &mut self.times {
                    times.keep(runtime, &mut self.notes);
                }
                Ok(done)
            }
            Backend::Simulated(file, options) => {
                let mut options = options.clone();
                if let Some(list) = list {
                    options.devices = Some(sim_devices(&list)?);
                }
                Ok(act(&mut simulator(file, &options)?))
            }
        }
    }
}

/// The list of `devices` with this many of the host's cores, which come first.
fn with_cores(cores: u32, devices: &[Device]) -> String {
    let others = devices.iter().skip(1).map(|device| device.name.clone());
    let all: Vec<String> = std::iter::once(format!("host:{cores}"))
        .chain(others)
        .collect();
    all.join(",")
}

fn simulator(file: &MachineFile, options: &SimOptions) -> Result<Sim, Failure> {
    Sim::new(file, options.clone()).map_err(refused)
}

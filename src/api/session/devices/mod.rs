//! The devices of a session: those of this machine, or of a simulated one. No other module opens
//! devices for runs.
//!
//! [`NamedMachine`] is a machine that the user names, [`FaultSpec`] a fault of a device, and
//! [`kept_times`] has the times of libraries from earlier runs. [`real`] opens drivers.

mod fault;
mod kept_times;
mod named;
mod real;

use std::path::PathBuf;
use std::process;

use crate::machine::{Device, Host, MachineFile, RuntimeKind};
use crate::report::Machine;
use crate::runtime::select::{Selection, SelectionError};
use crate::runtime::sim::{Sim, SimDevice, SimOptions};
use crate::runtime::{Devices as _, Runtime};

pub use fault::{FaultError, FaultSpec, UnfitFault};
pub use named::NamedMachine;

use super::Error;
use super::parts::Chosen;
use super::rows::{KnownRun, Row};
use super::specified::every;
use crate::engine::graph::kernel_seconds::KernelSeconds;
use crate::profile::kernels::KernelProfiles;
use kept_times::KeptTimes;
use real::RealDevices;

/// Which devices are opened, and how.
#[derive(Debug, Default)]
pub struct DeviceOptions {
    /// The machine; `None` for this one.
    pub machine: Option<NamedMachine>,
    /// The devices, as `--devices` names them; `None` for all.
    pub list: Option<String>,
    /// Whether the work needs double precision.
    pub fp64: bool,
    /// Of a simulated machine: whether it computes results.
    pub data: bool,
    /// Of a simulated machine: what its times vary by.
    pub seed: u64,
    /// Of a simulated machine: their relative standard deviation; `None` for its file's.
    pub noise: Option<f64>,
    /// Where runs leave what they took; `None` for the user's file of this machine, and of a
    /// simulated one for nothing.
    pub kept: Option<PathBuf>,
    /// Whether nothing of earlier runs is used.
    pub fresh: bool,
    /// The GPU on which arrays are, by CUDA's number: its memory is the host's, too. The list has
    /// CUDA's devices alone then.
    pub arrays_on: Option<usize>,
}

/// Open devices.
pub struct OpenDevices {
    backend: Backend,
    /// The machine, for reports.
    pub machine: Machine,
    /// What was left out, and why.
    pub notes: Vec<String>,
    times: Option<KeptTimes>,
    tasks: Option<(String, (KernelSeconds, Option<u64>))>,
    /// The machine's file, if the user has named it.
    #[cfg(feature = "models")]
    named: Option<MachineFile>,
    /// Whether there is a list of them: the user's, or the file of a simulated machine.
    is_listed: bool,
    /// Whether the user has named them.
    pub is_named: bool,
    /// The process that has opened them, and has their threads.
    process: u32,
}

enum Backend {
    Real(Box<RealDevices>),
    Simulated(Box<Simulation>),
}

/// A simulated machine, how it is simulated, and the simulator of the present run.
struct Simulation {
    file: MachineFile,
    options: SimOptions,
    sim: Sim,
}

impl OpenDevices {
    /// Opens devices: real ones if the machine is this one, with the direct paths between GPUs
    /// that its file has.
    ///
    /// # Errors
    /// When there is no such machine or device, or it cannot be opened.
    pub fn open(options: DeviceOptions) -> Result<Self, Error> {
        let name = options.machine.as_ref().map(|named| named.called.clone());
        let (kept, fresh) = (options.kept.as_deref(), options.fresh);
        let is_listed = options.list.is_some();
        let is_named = is_listed;
        let named = match options.machine {
            Some(named) if named.is_simulated() => {
                let noise = options.noise;
                let (seed, data) = (options.seed, options.data);
                let devices = options.list.as_deref().map(SimDevice::list).transpose()?;
                let note = named.simulated_note();
                let sim_options = SimOptions {
                    seed,
                    noise,
                    data,
                    graphs: false,
                    faults: Vec::new(),
                    devices,
                };
                let simulation = Simulation::new(named.file, sim_options)?;
                let devices = simulation.sim.devices().to_vec();
                let mut notes = vec![note];
                let times = KeptTimes::simulated(&simulation.file.name, kept, fresh, &mut notes);
                return Ok(Self {
                    machine: Machine::simulated(&simulation.file, devices),
                    backend: Backend::Simulated(Box::new(simulation)),
                    notes,
                    times: Some(times),
                    tasks: None,
                    #[cfg(feature = "models")]
                    named: None,
                    is_listed: true,
                    is_named,
                    process: process::id(),
                });
            }
            named => named,
        };
        let (mut real, mut notes) =
            RealDevices::open(options.list.as_deref(), options.fp64, options.arrays_on)?;
        let devices = real.runtime().devices();
        let mut times = KeptTimes::of(devices, kept, fresh, &mut notes);
        let mut name = name;
        if devices.iter().any(kept_times::is_linked) {
            let of_file = named.clone().or_else(NamedMachine::here);
            name = name.or_else(|| Some(of_file.as_ref()?.file.name.clone()));
            // A file of another runtime's devices says nothing of these.
            let file = of_file.map(|named| named.file);
            let file = file.filter(|file| kept_times::has_all(file, devices));
            let measured = times.as_mut().filter(|_| file.is_none());
            let measured = measured.and_then(|times| times.machine(real.runtime(), &mut notes));
            if let Some(file) = file.or(measured.cloned()) {
                real.connect(file);
            }
        }
        let devices = real.runtime().devices().to_vec();
        let name = name.unwrap_or("this machine".into());
        Ok(Self {
            machine: Machine::real(name, Host::detect(), devices),
            backend: Backend::Real(Box::new(real)),
            notes,
            times,
            tasks: None,
            #[cfg(feature = "models")]
            named: named.map(|named| named.file),
            is_listed,
            is_named,
            process: process::id(),
        })
    }

    /// Refuses a process that was forked from the one that has opened them.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn check(&self) -> Result<(), Error> {
        match self.process == process::id() {
            true => Ok(()),
            false => Err(Error::Forked {
                opened: self.process,
            }),
        }
    }

    /// Injects faults into the runs to come of these of its devices; those of real devices end
    /// with the next opening of devices. Their steps are below `steps`.
    ///
    /// # Errors
    /// When a device of a fault takes no part, when a step never comes, and when a real device
    /// cannot have it.
    pub fn inject(
        &mut self,
        specs: &[FaultSpec],
        devices: &[Device],
        steps: u32,
    ) -> Result<(), UnfitFault> {
        match &mut self.backend {
            Backend::Real(real) => real.lose(fault::losses(specs, devices)?),
            Backend::Simulated(simulation) => {
                simulation.options.faults = fault::simulated(specs, devices, steps)?;
            }
        }
        Ok(())
    }

    /// The simulated machine's file, and the options of the runs to come; `None` for
    /// real devices.
    pub fn simulation(&mut self) -> Option<(&MachineFile, &mut SimOptions)> {
        match &mut self.backend {
            Backend::Real(_) => None,
            Backend::Simulated(simulation) => Some((&simulation.file, &mut simulation.options)),
        }
    }

    /// Calls `act` with the devices, where nothing depends on results: simulated ones hold no data,
    /// and are new each time. Codelets of which earlier runs know whether a library is faster are
    /// known to the devices.
    ///
    /// # Errors
    /// When the devices cannot be opened anew.
    pub fn without_data<T>(&mut self, act: impl FnOnce(&mut dyn Runtime) -> T) -> Result<T, Error> {
        let data = (self.simulation()).map(|(_, options)| std::mem::take(&mut options.data));
        let done = self.begin(None).map(|()| act(self.runtime()));
        self.end();
        if let Some(((_, options), data)) = self.simulation().zip(data) {
            options.data = data;
        }
        done
    }

    /// A run begins, with these devices if they are not all.
    ///
    /// # Errors
    /// When the devices cannot be opened anew.
    pub fn begin(&mut self, list: Option<&str>) -> Result<(), Error> {
        match &mut self.backend {
            Backend::Real(real) => {
                let runtime = real.with(list)?;
                if let Some(times) = &self.times {
                    times.hand_to(runtime);
                }
            }
            Backend::Simulated(simulation) => {
                simulation.begin(list)?;
            }
        }
        Ok(())
    }

    /// The devices of the present run, and after it.
    pub fn runtime(&mut self) -> &mut dyn Runtime {
        match &mut self.backend {
            Backend::Real(real) => real.runtime(),
            Backend::Simulated(simulation) => &mut simulation.sim,
        }
    }

    /// A run ends: what was measured is kept.
    pub fn end(&mut self) {
        if let Backend::Real(real) = &mut self.backend {
            let runtime = real.runtime();
            self.machine.implementations = runtime.implementations();
            if let Some(times) = &mut self.times {
                times.keep(runtime, &mut self.notes);
            }
        }
    }

    /// What is known of earlier runs.
    pub fn earlier(&self) -> Option<&KernelProfiles> {
        self.times.as_ref()?.earlier()
    }

    /// What is known of runs like this one.
    pub fn known(&self, row: &Row) -> Option<KnownRun> {
        row.known(self.earlier()?)
    }

    /// The seconds of the tasks of the last run of this session, and their tile, if they are those of
    /// this part. Others are measured, which also makes the devices ready.
    pub fn known_tasks(&self, row: &Row, part: &[usize]) -> Option<(KernelSeconds, Option<u64>)> {
        let (of, known) = self.tasks.as_ref()?;
        (*of == row.of_tasks(part)).then(|| known.clone())
    }

    /// Notes the seconds of a part's tasks, and their tile if it is not the one that suits it.
    pub fn note_tasks(&mut self, row: &Row, part: &[usize], tasks: (KernelSeconds, Option<u64>)) {
        self.tasks = Some((row.of_tasks(part), tasks));
    }

    /// Notes a run on a part, which took so many seconds, or whose steps did with units so divided;
    /// and the part on which it began.
    pub fn note(
        &mut self,
        row: &Row,
        chosen: &Chosen,
        took: (f64, Vec<[u64; 2]>),
        began: Option<&[usize]>,
    ) {
        if let Some(profiles) = self.times.as_mut().and_then(KeptTimes::rows) {
            row.note(profiles, chosen, took, began);
        }
    }

    /// The devices that run kernels in OpenCL C: of a list those that do, otherwise all that
    /// drivers offer.
    ///
    /// # Errors
    /// When there are none.
    pub fn of_kernels(&self) -> Result<Self, Error> {
        let list = match self.is_listed {
            false => every()?.0,
            true => {
                let own = self.machine.devices.iter();
                let own = own.filter(|device| runs_kernels(device));
                let names: Vec<&str> = own.map(|device| device.name.as_str()).collect();
                names.join(",")
            }
        };
        match list.is_empty() {
            true => Err(Error::NoKernelDevice {
                what: "no device of the session runs kernels in OpenCL C".to_owned(),
                remedy: "name one (`pdawl devices` shows them), or install PoCL for the CPU"
                    .to_owned(),
            }),
            false => Self::open(DeviceOptions {
                list: Some(list),
                ..DeviceOptions::default()
            }),
        }
    }

    /// Whether all devices run kernels in OpenCL C, or are simulated.
    pub fn are_of_kernels(&self) -> bool {
        self.machine.simulated || self.machine.devices.iter().all(runs_kernels)
    }

    /// The file of the simulated machine, or that of this one if there is one.
    #[cfg(feature = "models")]
    pub fn file(&self) -> Option<std::borrow::Cow<'_, MachineFile>> {
        use std::borrow::Cow;
        match &self.backend {
            Backend::Simulated(simulation) => Some(Cow::Borrowed(&simulation.file)),
            Backend::Real(_) => match &self.named {
                Some(file) => Some(Cow::Borrowed(file)),
                None => NamedMachine::here().map(|here| Cow::Owned(here.file)),
            },
        }
    }

    /// The same, or what a first run has measured.
    #[cfg(feature = "models")]
    pub fn file_or_measured(&self) -> Option<std::borrow::Cow<'_, MachineFile>> {
        let measured = self.times.as_ref().and_then(KeptTimes::measured);
        self.file()
            .or_else(|| measured.map(std::borrow::Cow::Borrowed))
    }
}

impl Simulation {
    fn new(file: MachineFile, options: SimOptions) -> Result<Self, Error> {
        let sim = Sim::new(&file, options.clone())?;
        Ok(Self { file, options, sim })
    }

    /// A run begins at time 0, with these devices if they differ from those of the options.
    fn begin(&mut self, list: Option<&str>) -> Result<&Sim, Error> {
        let mut options = self.options.clone();
        if let Some(list) = list {
            options.devices = Some(SimDevice::list(list)?);
        }
        self.sim = Sim::new(&self.file, options)?;
        Ok(&self.sim)
    }
}

/// The devices as a list, with so many cores in the host's pool, which is the first.
pub(super) fn with_cores(cores: u32, devices: &[Device]) -> String {
    let others = devices.iter().skip(1).map(|device| device.name.clone());
    let all: Vec<String> = std::iter::once(format!("host:{cores}"))
        .chain(others)
        .collect();
    all.join(",")
}

/// Whether a device runs kernels in OpenCL C.
fn runs_kernels(device: &Device) -> bool {
    device.runtime != RuntimeKind::Host
}

/// How many devices of a list keep what would be in their own memory in that of the host.
///
/// # Errors
/// A wrong list.
pub fn memories_in_host(list: &str) -> Result<u64, Error> {
    let selection = selection(list)?;
    let own = selection.devices().iter().filter(|spec| spec.own_memory);
    Ok(own.count() as u64)
}

/// The devices that a list names.
fn selection(list: &str) -> Result<Selection, SelectionError> {
    list.parse()
}

//! From what the user said to a session: a machine, its devices, and a
//! workload that fits.

use std::path::Path;

use pdawl::engine::corun;
use pdawl::machine::host::Placement;
use pdawl::machine::{Device, Host, MachineFile, Shelf, load};
use pdawl::report::schema::{HostInfo, Machine};
use pdawl::runtime::Runtime;
use pdawl::runtime::select::Selection;
use pdawl::runtime::sim::{At, Fault, Sim, SimDevice, SimOptions};

use super::Session;
use super::ground::{Ground, Rig};
use super::model::{Missing, Site};
use super::room::roomy;
use super::threshold;
use crate::cli::args::{ModelChoice, Place};
use crate::cli::failure::{Failure, refused, wrong_devices};
use crate::cli::fault::FaultSpec;
use crate::cli::grid::Budget;
use crate::cli::here::{self, fingerprint};
use crate::cli::size::ByteSize;
use crate::cli::spec::devices::opencl_only;
use crate::cli::task::{Task, Wanted};

impl Session {
    /// Opens the devices.
    ///
    /// # Errors
    /// When there is no such machine or device, or the workload does not fit.
    pub fn open(
        place: &Place,
        wanted: Wanted,
        verify: bool,
        choice: ModelChoice,
    ) -> Result<Self, Failure> {
        let notes = wanted.notes();
        let mut session = Self::on_ground(place, wanted, verify, choice)?;
        session.notes.extend(notes);
        Ok(session)
    }

    fn on_ground(
        place: &Place,
        wanted: Wanted,
        verify: bool,
        choice: ModelChoice,
    ) -> Result<Self, Failure> {
        if let Wanted::Kernel(_) = &wanted {
            return Self::kernel_on_this_machine(place, wanted, verify);
        }
        let Some(name) = &place.machine else {
            let file = match choice {
                ModelChoice::None => None,
                _ => here::file(&fingerprint()),
            };
            return Self::on_this_machine(file, place, wanted, verify, choice);
        };
        let file = machine_file(name)?;
        let here = fingerprint();
        match here.is(file.fingerprint.as_deref()) {
            true => Self::on_this_machine(Some(file), place, wanted, verify, choice),
            false => {
                let note = format!(
                    "every time is simulated: machine {} is not this one, which is {here}",
                    file.name
                );
                Self::simulated(file, place, wanted, verify, choice, note)
            }
        }
    }

    fn on_this_machine(
        file: Option<MachineFile>,
        place: &Place,
        wanted: Wanted,
        verify: bool,
        choice: ModelChoice,
    ) -> Result<Self, Failure> {
        if !place.fault.is_empty() || place.noise.is_some() {
            return Err(Failure::usage(
                "--fault and --noise are for simulated machines, and this run is on real devices",
                "--machine NAME of another machine; `pdawl machine list` shows them",
            ));
        }
        let host = Host::detect();
        let free = host.memory.obtainable(0);
        let selection = (place.devices.as_deref())
            .map(str::parse::<Selection>)
            .transpose()
            .map_err(wrong_devices)?;
        let budget = Budget {
            // A limit that is asked for counts even above what the system
            // shows: some machines' memory grows with its use.
            memory: place.host_memory.unwrap_or(ByteSize(free)),
            grids: 2 + reference_grids(verify),
        };
        let mut task = wanted.task(beside_copies(budget, selection.as_ref(), place.gpu_memory))?;
        let (mut rig, mut notes) = Rig::open(selection, task.workload().fp64())?;
        let mut roomy = roomy(&task, rig.as_asked()?.devices(), place.gpu_memory);
        let left_out = roomy.notes.clone();
        notes.append(&mut roomy.notes);
        if let Some(list) = roomy.list {
            rig.narrow(list.parse().map_err(wrong_devices)?);
        }
        if let Task::Kernel(kernel) = &mut task {
            let runtime = rig.as_asked()?;
            if let Some(only) = kernel.examine(runtime)? {
                let only = runtime.devices()[only].name.clone();
                rig.narrow(only.parse().map_err(wrong_devices)?);
            }
            notes.append(&mut kernel.notes);
        }
        let machine = Machine {
            name: place.machine.clone().unwrap_or("this machine".into()),
            simulated: false,
            host: HostInfo {
                cpu: host.model,
                cores: host.cores.len() as u32,
                memory: host.memory.total(),
            },
            devices: rig.as_asked()?.devices().to_vec(),
        };
        let model = Site {
            file: file.as_ref(),
            simulated: false,
            devices: &machine.devices,
            chosen: place.devices.is_some(),
            codelet: &task.workload().codelet().name,
            fp64: task.workload().fp64(),
            work: &|| task.work(),
            gpu_memory: place.gpu_memory.map(|size| size.0),
        }
        .find(choice)?;
        let (task, model) = threshold::planned(task, model);
        Ok(Self {
            model,
            left_out,
            notes,
            ..Self::new(Ground::Real(rig), machine, task, place, verify)
        })
    }

    /// A user's kernel: on every OpenCL device, where none is named.
    fn kernel_on_this_machine(
        place: &Place,
        wanted: Wanted,
        verify: bool,
    ) -> Result<Self, Failure> {
        let place = opencl_only(place)?;
        Self::on_this_machine(None, &place, wanted, verify, ModelChoice::None)
    }

    fn simulated(
        mut file: MachineFile,
        place: &Place,
        wanted: Wanted,
        verify: bool,
        choice: ModelChoice,
        note: String,
    ) -> Result<Self, Failure> {
        if let Some(limit) = place.host_memory {
            file.host.memory = file.host.memory.min(limit.0);
        }
        let mut budget = Budget {
            memory: ByteSize(file.host.memory),
            grids: 2,
        };
        if verify {
            // A run with data is computed here, its devices' memory included.
            let here = Budget {
                memory: ByteSize(Host::detect().memory.obtainable(0)),
                grids: 4 + reference_grids(verify),
            };
            budget = budget.tighter(here);
        }
        let seed = wanted.seed();
        let task = wanted.task(budget)?;
        let mut options = SimOptions {
            seed,
            noise: place.noise,
            data: verify,
            faults: Vec::new(),
            devices: place.devices.as_deref().map(sim_devices).transpose()?,
        };
        let open = |options: &SimOptions| {
            Sim::new(&file, options.clone()).map(|sim| sim.devices().to_vec())
        };
        let mut devices = open(&options).map_err(refused)?;
        let mut roomy = roomy(&task, &devices, place.gpu_memory);
        if let Some(list) = &roomy.list {
            options.devices = Some(sim_devices(list)?);
            devices = open(&options).map_err(refused)?;
        }
        options.faults = faults(&place.fault, &devices, (task.steps(), "--steps"))?;
        let machine = Machine {
            name: file.name.clone(),
            simulated: true,
            host: HostInfo {
                cpu: file.host.model.clone(),
                cores: file.host.cores,
                memory: file.host.memory,
            },
            devices,
        };
        let model = Site {
            file: Some(&file),
            simulated: true,
            devices: &machine.devices,
            chosen: place.devices.is_some(),
            codelet: &task.workload().codelet().name,
            fp64: task.workload().fp64(),
            work: &|| task.work(),
            gpu_memory: place.gpu_memory.map(|size| size.0),
        }
        .find(choice)?;
        let (task, model) = threshold::planned(task, model);
        let ground = Ground::Simulated(Box::new(file), options);
        Ok(Self {
            model,
            left_out: roomy.notes.clone(),
            notes: std::iter::once(note).chain(roomy.notes.drain(..)).collect(),
            ..Self::new(ground, machine, task, place, verify)
        })
    }

    fn new(ground: Ground, machine: Machine, task: Task, place: &Place, verify: bool) -> Self {
        Self {
            ground,
            machine,
            options: corun::Options {
                steps: task.steps(),
                gpu_memory: place.gpu_memory.map(|size| size.0),
                stream: corun::Stream::default(),
                verify,
                trace: true,
            },
            task,
            model: Err(Missing::default()),
            planned: None,
            oracle: None,
            comparison: Vec::new(),
            left_out: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// Grids that the sequential reference needs.
fn reference_grids(verify: bool) -> u64 {
    match verify {
        true => 2,
        false => 0,
    }
}

/// A machine file by name, or by path: what has a separator or ends in
/// `.toml`.
pub(in crate::cli) fn machine_file(name: &str) -> Result<MachineFile, Failure> {
    let is_path = name.contains(std::path::MAIN_SEPARATOR) || name.ends_with(".toml");
    let file = match is_path {
        true => load(Path::new(name)),
        false => Shelf::of_user().find(name),
    };
    file.map_err(Failure::of)
}

/// A list of devices as the simulator knows them.
pub(in crate::cli) fn sim_devices(list: &str) -> Result<Vec<SimDevice>, Failure> {
    list.split(',')
        .map(|item| sim_device(item.trim()))
        .collect()
}

/// Where cores lie makes no difference to the simulator.
fn sim_device(item: &str) -> Result<SimDevice, Failure> {
    let (device, placement) = match item.split_once('@') {
        Some((device, placement)) => (device, Some(placement)),
        None => (item, None),
    };
    let (name, cores) = match device.split_once(':') {
        Some((name, cores)) => (name, Some(cores)),
        None => (device, None),
    };
    let wrong = |why: String| Err(wrong_devices(why));
    match (placement, cores) {
        (Some(_), _) if name != "host" => wrong(format!(
            "`{item}`: only the host's cores are placed, as in host:8@spread"
        )),
        (Some(word), _) if word.parse::<Placement>().is_err() => wrong(format!(
            "`{item}`: `{word}` is no placement of cores; write @compact or @spread"
        )),
        (_, None) if name == "host" => Ok(SimDevice::Host { cores: None }),
        (_, None) => Ok(SimDevice::Named(name.to_owned())),
        (_, Some(cores)) if name == "host" => match cores.parse() {
            Ok(cores) => Ok(SimDevice::Host { cores: Some(cores) }),
            Err(_) => wrong(format!("`{cores}` is not a number of cores")),
        },
        (_, Some(_)) => wrong(format!(
            "a simulated {name} cannot be divided; only the host's cores can, as in host:8"
        )),
    }
}

/// Faults by the devices' indices, in a run of so many steps; `more` is the
/// option that makes them more.
pub(in crate::cli) fn faults(
    specs: &[FaultSpec],
    devices: &[Device],
    (steps, more): (u32, &str),
) -> Result<Vec<Fault>, Failure> {
    let last = steps.saturating_sub(1);
    specs
        .iter()
        .map(|spec| {
            if let At::Step(step) = spec.at
                && step > last
            {
                let device = &spec.device;
                return Err(Failure::usage(
                    format!("--fault: step {step}, of {device}, never comes: the last is {last}"),
                    format!("a step from 0 to {last}, or more {more}"),
                ));
            }
            let device = devices.iter().position(|d| d.name == spec.device);
            let device = device.ok_or_else(|| {
                let names: Vec<&str> = devices.iter().map(|d| d.name.as_str()).collect();
                Failure::usage(
                    format!("--fault: no device `{}` takes part", spec.device),
                    format!("one of {}", names.join(", ")),
                )
            })?;
            Ok(Fault {
                device,
                at: spec.at,
                what: spec.what,
            })
        })
        .collect()
}

/// What devices leave that hold data in the host's memory as if it were their
/// own: two grids each, or their limit.
fn beside_copies(
    mut budget: Budget,
    selection: Option<&Selection>,
    limit: Option<ByteSize>,
) -> Budget {
    let specs = selection.map_or(&[][..], Selection::devices);
    let holders = specs.iter().filter(|spec| spec.own_memory).count() as u64;
    match limit {
        None => budget.grids += 2 * holders,
        Some(ByteSize(limit)) => {
            let held = limit.saturating_mul(holders);
            budget.memory = ByteSize(budget.memory.0.saturating_sub(held));
        }
    }
    budget
}

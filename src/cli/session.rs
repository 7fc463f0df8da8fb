//! What a run needs: a machine, real or simulated, and a workload on it. Here
//! the command line meets the library's runtimes, engine and balancers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pdawl::balance::{Balancer, Fixed, Setup, Strategy, Sweep};
use pdawl::codelet::copy;
use pdawl::engine::Outcome;
use pdawl::engine::corun::{self, Control, CorunError};
use pdawl::engine::measure::{self, About, MeasureOptions};
use pdawl::machine::{
    Device, DeviceKind, Fingerprint, Host, MachineFile, RuntimeKind, Shelf, load,
};
use pdawl::report::Context;
use pdawl::report::bench::median;
use pdawl::report::schema::{HostInfo, Machine, Single, Throughput};
use pdawl::runtime::select::{self, Selection};
use pdawl::runtime::sim::{Fault, Sim, SimDevice, SimOptions};
use pdawl::runtime::{DeviceId, Runtime, RuntimeError, opencl};
use pdawl::workload::Divisible;
use pdawl::workload::stencil::Stencil;

use super::args::Place;
use super::failure::Failure;
use super::fault::FaultSpec;
use super::grid::{Budget, Grid};
use super::size::ByteSize;

/// Bytes of the copies that the host's bandwidth is measured with: more than
/// any cache.
const COPY_BYTES: u64 = 512 << 20;

/// Steps of a trial run of the oracle on real devices, where each takes time.
const TRIAL_STEPS: u32 = 8;

/// A workload on a machine, to be run as often as one likes.
pub struct Session {
    ground: Ground,
    grid: Grid,
    stencil: Stencil,
    machine: Machine,
    options: corun::Options,
    /// What the oracle found, once it was asked.
    oracle: Option<Vec<f64>>,
    comparison: Vec<Single>,
    notes: Vec<String>,
}

/// Where commands run.
enum Ground {
    Real(Box<dyn Runtime>),
    /// Each run begins on a machine of its own, at time 0.
    Simulated(Box<MachineFile>, SimOptions),
}

type MakeBalancer<'a> = dyn FnMut(&Setup) -> Result<Box<dyn Balancer>, String> + 'a;

impl Session {
    /// Opens the devices.
    ///
    /// # Errors
    /// When there is no such machine or device, or the grid does not fit.
    pub fn open(place: &Place, grid: &Grid, verify: bool) -> Result<Self, Failure> {
        let found = match &place.machine {
            None => None,
            Some(name) => {
                let file = machine_file(name)?;
                let here = fingerprint();
                match here.is(file.fingerprint.as_deref()) {
                    true => None,
                    false => Some((file, here)),
                }
            }
        };
        match found {
            None => Self::on_this_machine(place, grid, verify),
            Some((file, here)) => {
                let note = format!(
                    "every time is simulated: machine {} is not this one, which is {here}",
                    file.name
                );
                Self::simulated(file, place, grid, verify, note)
            }
        }
    }

    fn on_this_machine(place: &Place, grid: &Grid, verify: bool) -> Result<Self, Failure> {
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
        let stencil = grid.stencil(beside_copies(budget, selection.as_ref(), place.gpu_memory))?;
        let (runtime, notes) = select::open(selection.as_ref(), stencil.fp64()).map_err(refused)?;
        let machine = Machine {
            name: place.machine.clone().unwrap_or("this machine".into()),
            simulated: false,
            host: HostInfo {
                cpu: host.model,
                cores: host.cores.len() as u32,
                memory: host.memory.total(),
            },
            devices: runtime.devices().to_vec(),
        };
        let ground = Ground::Real(runtime);
        Ok(Self::new(
            ground, machine, stencil, place, grid, verify, notes,
        ))
    }

    fn simulated(
        mut file: MachineFile,
        place: &Place,
        grid: &Grid,
        verify: bool,
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
        let stencil = grid.stencil(budget)?;
        let mut options = SimOptions {
            seed: grid.seed,
            noise: place.noise,
            data: verify,
            faults: Vec::new(),
            devices: place.devices.as_deref().map(sim_devices).transpose()?,
        };
        let devices = {
            let sim = Sim::new(&file, options.clone()).map_err(refused)?;
            sim.devices().to_vec()
        };
        options.faults = faults(&place.fault, &devices)?;
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
        let ground = Ground::Simulated(Box::new(file), options);
        let notes = vec![note];
        Ok(Self::new(
            ground, machine, stencil, place, grid, verify, notes,
        ))
    }

    fn new(
        ground: Ground,
        machine: Machine,
        stencil: Stencil,
        place: &Place,
        grid: &Grid,
        verify: bool,
        notes: Vec<String>,
    ) -> Self {
        Self {
            ground,
            grid: grid.clone(),
            stencil,
            machine,
            options: corun::Options {
                steps: grid.steps,
                gpu_memory: place.gpu_memory.map(|size| size.0),
                verify,
                trace: true,
            },
            oracle: None,
            comparison: Vec::new(),
            notes,
        }
    }

    /// Runs the workload once. `progress` is told the steps done and asked for.
    ///
    /// # Errors
    /// What the engine refuses, or cannot recover from.
    pub fn run(
        &mut self,
        strategy: &Strategy,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u32, u32),
    ) -> Result<Outcome, Failure> {
        if *strategy != Strategy::Oracle {
            let make = &mut |setup: &Setup| strategy.build(setup).map_err(|e| e.to_string());
            return self.corun(make, self.options, stop, progress);
        }
        let shares = match &self.oracle {
            Some(shares) => shares.clone(),
            None => match self.sweep(stop)? {
                Swept::Best(shares) => self.oracle.insert(shares).clone(),
                Swept::Interrupted(outcome) => return Ok(*outcome),
            },
        };
        let make = &mut |setup: &Setup| -> Result<Box<dyn Balancer>, String> {
            Ok(Box::new(Fixed::new("oracle", setup, &shares)))
        };
        self.corun(make, self.options, stop, progress)
    }

    /// Measures fixed shares until the best are found.
    fn sweep(&mut self, stop: &AtomicBool) -> Result<Swept, Failure> {
        let mut options = self.options;
        options.verify = false;
        options.trace = false;
        if let Ground::Real(_) = self.ground {
            options.steps = options.steps.min(TRIAL_STEPS);
        }
        let mut sweep: Option<Sweep> = None;
        let mut trials = 0;
        while sweep.as_mut().is_none_or(|sweep| sweep.next().is_some()) {
            let make = &mut |setup: &Setup| -> Result<Box<dyn Balancer>, String> {
                let sweep = sweep.get_or_insert_with(|| Sweep::new(setup));
                let shares = sweep.next().ok_or("there are no shares to try")?;
                Ok(Box::new(Fixed::new("oracle", setup, &shares)))
            };
            let outcome = self.corun(make, options, stop, &mut |_, _| {})?;
            if outcome.interrupted {
                return Ok(Swept::Interrupted(Box::new(outcome)));
            }
            // The first step moves data that later ones find in place.
            let seconds: Vec<f64> = outcome.steps.iter().map(|s| s.seconds).collect();
            if let Some(sweep) = &mut sweep {
                sweep.tell(median(&seconds).unwrap_or(f64::INFINITY));
            }
            trials += 1;
        }
        let best = sweep.as_ref().and_then(Sweep::best);
        let (shares, _) = best.ok_or_else(|| {
            Failure::failed(
                "the oracle found no shares",
                "another --strategy, such as dawl",
            )
        })?;
        let told: Vec<String> = shares.iter().map(|share| format!("{share:.4}")).collect();
        self.notes.push(format!(
            "the oracle's shares are {}, the best of {trials} trial runs",
            told.join(", ")
        ));
        Ok(Swept::Best(shares.to_vec()))
    }

    fn corun(
        &mut self,
        make: &mut MakeBalancer,
        options: corun::Options,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u32, u32),
    ) -> Result<Outcome, Failure> {
        let mut control = Control { stop, progress };
        let outcome = match &mut self.ground {
            Ground::Real(runtime) => corun::run(
                runtime.as_mut(),
                &self.stencil,
                make,
                &options,
                &mut control,
            ),
            Ground::Simulated(file, sim) => {
                let mut sim = Sim::new(file, sim.clone()).map_err(refused)?;
                corun::run(&mut sim, &self.stencil, make, &options, &mut control)
            }
        };
        outcome.map_err(|error| match error {
            CorunError::Runtime(error) => refused(error),
            CorunError::Strategy(why) => Failure::usage(
                why,
                "another --strategy, or other --devices; `pdawl devices` shows them",
            ),
            other => Failure::of(other),
        })
    }

    /// Runs the single devices too, where that costs no time: in a simulation
    /// without faults.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn compare(&mut self, strategy: &Strategy, stop: &AtomicBool) -> Result<(), Failure> {
        let Ground::Simulated(_, sim) = &mut self.ground else {
            return Ok(());
        };
        if !sim.faults.is_empty() {
            return Ok(());
        }
        let data = std::mem::replace(&mut sim.data, false);
        let options = self.options;
        self.options.verify = false;
        self.options.trace = false;
        for single in self.singles() {
            if single == *strategy {
                continue;
            }
            let outcome = self.run(&single, stop, &mut |_, _| {})?;
            if !outcome.interrupted {
                self.comparison.push(Single {
                    strategy: single.to_string(),
                    throughput: Throughput::of_points(self.points(), outcome.seconds),
                });
            }
        }
        self.options = options;
        if let Ground::Simulated(_, sim) = &mut self.ground {
            sim.data = data;
        }
        Ok(())
    }

    /// Each device alone: `cpu` or `gpu` where there is one of that kind,
    /// else a share of 1 for one device and 0 for the others.
    pub fn single_devices(&self) -> Vec<Strategy> {
        let devices = &self.machine.devices;
        let is_cpu = |d: &Device| d.kind == DeviceKind::Cpu;
        let alone = |i: usize| {
            let kind = is_cpu(&devices[i]);
            match (devices.iter().filter(|d| is_cpu(d) == kind).count(), kind) {
                (1, true) => Strategy::Cpu,
                (1, false) => Strategy::Gpu,
                _ => Strategy::alone(i, devices.len()),
            }
        };
        (0..devices.len()).map(alone).collect()
    }

    /// `cpu` and `gpu`, where the machine has such a device.
    fn singles(&self) -> Vec<Strategy> {
        let has = |cpu: bool| {
            let mut devices = self.machine.devices.iter();
            devices.any(|d| (d.kind == DeviceKind::Cpu) == cpu)
        };
        [(Strategy::Cpu, has(true)), (Strategy::Gpu, has(false))]
            .into_iter()
            .filter_map(|(strategy, possible)| possible.then_some(strategy))
            .collect()
    }

    /// The strategies that a comparison is made of on these devices.
    pub fn strategies(&self) -> Vec<Strategy> {
        let mut all = self.singles();
        for single in self.single_devices() {
            if !all.contains(&single) {
                all.push(single);
            }
        }
        all.extend([Strategy::Guided, Strategy::Dawl, Strategy::Oracle]);
        all
    }

    /// What a report tells beyond the outcome.
    pub fn context(&self, strategy: &Strategy) -> Context {
        Context {
            workload: self.grid.workload(&self.stencil),
            machine: self.machine.clone(),
            strategy: strategy.to_string(),
            comparison: self.comparison.clone(),
            notes: self.notes.clone(),
        }
    }

    /// Points computed in all steps.
    pub fn points(&self) -> u64 {
        let step = self
            .stencil
            .units()
            .saturating_mul(self.stencil.unit_points());
        step.saturating_mul(self.grid.steps.into())
    }

    /// Bytes of memory traffic that a point needs at least.
    pub fn bytes_per_point(&self) -> f64 {
        let points = self.stencil.unit_points().max(1);
        self.stencil.cost(1).bytes / points as f64
    }

    /// Bytes a second that a copy by the host's cores reads and writes:
    /// measured now, or the machine file's. `None` if no cores take part
    /// through the embedded runtime.
    ///
    /// # Errors
    /// When the measurement fails.
    pub fn copy_bandwidth(&mut self) -> Result<Option<f64>, Failure> {
        let runtime = match &mut self.ground {
            Ground::Simulated(file, _) => return Ok(Some(file.host.memory_bandwidth)),
            Ground::Real(runtime) => runtime,
        };
        let mut devices = runtime.devices().iter();
        let Some(pool) = devices.position(|d| d.runtime == RuntimeKind::Host) else {
            return Ok(None);
        };
        let options = MeasureOptions {
            bytes: COPY_BYTES,
            repeats: 5,
        };
        let copy = Arc::new(copy::codelet());
        measure::copy_bandwidth(runtime.as_mut(), &copy, DeviceId(pool), options)
            .map(Some)
            .map_err(Failure::of)
    }
}

/// How a sweep ended.
enum Swept {
    Best(Vec<f64>),
    Interrupted(Box<Outcome>),
}

/// Grids that the sequential reference needs.
fn reference_grids(verify: bool) -> u64 {
    match verify {
        true => 2,
        false => 0,
    }
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

/// Every device of this machine, and what would hurt.
///
/// # Errors
/// When not even the host can be opened.
pub fn found() -> Result<(Vec<Device>, Vec<String>), Failure> {
    let host: Selection = "host".parse().map_err(wrong_devices)?;
    let (runtime, mut warnings) = select::open(Some(&host), false).map_err(refused)?;
    let mut devices = runtime.devices().to_vec();
    let discovery = opencl::discover();
    devices.extend(discovery.devices.into_iter().map(|found| found.info));
    warnings.extend(Host::detect().warnings());
    warnings.extend(discovery.warnings);
    Ok((devices, warnings))
}

/// This machine, measured with copies of this size, under a name. `progress` is told the device and
/// what of it is measured next.
///
/// # Errors
/// When the devices cannot be opened or measured.
pub fn measured(
    name: &str,
    copy_size: ByteSize,
    progress: &mut dyn FnMut(&str, &str),
) -> Result<MachineFile, Failure> {
    let host = Host::detect();
    let (mut runtime, notes) = select::open(None, false).map_err(refused)?;
    let about = About {
        name: name.to_owned(),
        title: format!("{} with {} cores", host.model, host.cores.len()),
        description: format!("Measured by `pdawl machine save`. {}", notes.join(" ")),
        fingerprint: Some(fingerprint().to_string()),
        sockets: host.sockets,
        l2: host.l2.map(|cache| cache.bytes),
        l3: host.l3.map(|cache| cache.bytes),
    };
    let options = MeasureOptions {
        // Several copies are kept at a time.
        bytes: copy_size.0.min(host.memory.obtainable(0) / 8),
        ..MeasureOptions::default()
    };
    let copy = Arc::new(copy::codelet());
    measure::measure(runtime.as_mut(), &copy, about, options, progress).map_err(Failure::of)
}

/// Which machine this is.
fn fingerprint() -> Fingerprint {
    let host = Host::detect();
    let discovery = opencl::discover();
    let gpus = (discovery.devices.iter())
        .filter(|found| found.info.kind != DeviceKind::Cpu)
        .map(|found| found.info.model.as_str());
    Fingerprint::of(&host.model, host.online, gpus)
}

/// A machine file by name, or by path.
fn machine_file(name: &str) -> Result<MachineFile, Failure> {
    let path = Path::new(name);
    let file = match path.extension().is_some_and(|ending| ending == "toml") {
        true => load(path),
        false => Shelf::of_user().find(name),
    };
    file.map_err(Failure::of)
}

/// A list of devices as the simulator knows them.
fn sim_devices(list: &str) -> Result<Vec<SimDevice>, Failure> {
    list.split(',')
        .map(|item| match item.trim().split_once(':') {
            None if item.trim() == "host" => Ok(SimDevice::Host { cores: None }),
            None => Ok(SimDevice::Named(item.trim().to_owned())),
            Some(("host", cores)) => match cores.parse() {
                Ok(cores) => Ok(SimDevice::Host { cores: Some(cores) }),
                Err(_) => Err(wrong_devices(format!("`{cores}` is not a number of cores"))),
            },
            Some((name, _)) => Err(wrong_devices(format!(
                "a simulated {name} cannot be divided; only the host's cores can, as in host:8"
            ))),
        })
        .collect()
}

/// Faults by the devices' indices.
fn faults(specs: &[FaultSpec], devices: &[Device]) -> Result<Vec<Fault>, Failure> {
    specs
        .iter()
        .map(|spec| {
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

fn wrong_devices(why: impl std::fmt::Display) -> Failure {
    Failure::usage(
        format!("--devices: {why}"),
        "`pdawl devices`, or `pdawl machine show NAME`, for the names",
    )
}

/// A runtime's refusal; a wrong selection is the user's.
fn refused(error: RuntimeError) -> Failure {
    match error {
        RuntimeError::Selection(why) => Failure::usage(
            why,
            "`pdawl devices`, or `pdawl machine show NAME`, for what there is",
        ),
        other => Failure::of(other),
    }
}

//! A run of divided steps: a stencil, a product or a kernel of the user's, on the devices of a
//! session.
//!
//! [`Session::divide`] prepares it: `memory` leaves out devices that have too little of it,
//! `planned` asks the machine's file and its cost model, and a kernel is examined.
//! [`DividedRun::run`] runs it, as often as it is called. `oracle` searches for the best shares,
//! and `singles` compares a simulated run with single devices.

mod known;
mod memory;
mod oracle;
#[cfg(feature = "models")]
mod planned;
mod singles;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

#[cfg(feature = "models")]
use pdawl_profiler::bundle::Bundle;

#[cfg(not(feature = "models"))]
use super::OpenDevices;
use super::devices::with_cores;
use super::parts::{self, Chosen as ChosenPart, Expected};
use super::rows::{KnownRun, Others, Row};
use super::{Error, FaultSpec, Run, Running, Session};
use crate::balance::strategy::Shares;
use crate::balance::{Balancer, Dawl, Setup, Strategy};
use crate::codelet::Precision;
use crate::engine::corun::kernel::{SliceTrials, examine};
use crate::engine::corun::{Control, Corun, CorunError, Options, Stream, Tracing};
use crate::engine::{Outcome, StepRecord};
use crate::machine::{Device, DeviceKind, likely_fastest};
use crate::report::{Context, Workload, run::corun as corun_report};
use crate::workload::kernel::{Axis, Slices, UserKernel};
use crate::workload::spmv::Spmv;
use crate::workload::stencil::Stencil;
use crate::workload::{Divisible, Supersteps};

/// A workload whose steps devices divide.
pub enum Work {
    Stencil(Stencil),
    Product(Arc<Spmv>),
    Kernel {
        user: Box<UserKernel>,
        /// How it divides; found out if it is not known.
        division: Option<Division>,
    },
}

/// How a kernel divides, or why it does not.
#[derive(Clone, Debug)]
pub enum Division {
    By(Axis, Slices),
    Whole(String),
}

impl Work {
    /// The source of a kernel of the user's.
    fn source(&self) -> Option<String> {
        match self {
            Self::Kernel { user, .. } => Some(format!("{:?}", user.codelet().opencl)),
            _ => None,
        }
    }

    /// As the engine runs it.
    pub fn divisible(&self) -> &dyn Divisible {
        match self {
            Self::Stencil(stencil) => stencil,
            Self::Product(spmv) => spmv.as_ref(),
            Self::Kernel { user, .. } => user.as_ref(),
        }
    }
}

#[cfg(feature = "models")]
pub use planned::step;

/// Makes a balancer for the devices and the work.
pub type MakeBalancer = Arc<dyn Fn(&Setup) -> Box<dyn Balancer> + Send + Sync>;

/// How the steps of a run are divided.
#[derive(Clone)]
pub enum Sharing {
    /// By a kernel's `partition`, if its file has one; otherwise as [`Self::Adaptive`].
    Default,
    /// By [`Strategy::Pdawl`] where a cost model fits or the machine's file plans supersteps, and
    /// elsewhere by [`Strategy::Dawl`].
    Adaptive,
    By(Strategy),
    /// By a balancer of the user's, with its name.
    Own(String, MakeBalancer),
}

/// The cost model that may plan a run.
pub enum ModelChoice {
    None,
    /// The one that fits the machine.
    #[cfg(feature = "models")]
    Fitting,
    /// This one, or the run fails.
    #[cfg(feature = "models")]
    Named(Box<Bundle>),
}

impl ModelChoice {
    fn is_named(&self) -> bool {
        match self {
            Self::None => false,
            #[cfg(feature = "models")]
            Self::Fitting => false,
            #[cfg(feature = "models")]
            Self::Named(_) => true,
        }
    }
}

/// Whether earlier runs or what is known of the machine say how many steps are between two barriers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PlansSupersteps {
    Never,
    /// Where nobody names a strategy, a model or a fault, and the GPUs do not hold the grid.
    IfUsual,
    Always,
}

/// What is asked for of a run of divided steps.
pub struct Divided {
    pub work: Work,
    pub supersteps: Supersteps,
    pub plans_supersteps: PlansSupersteps,
    /// Whether a cost model says which rows of a matrix the host may have first.
    pub plans_irregular: bool,
    /// The change in a step that ends the run.
    pub tolerance: Option<f64>,
    pub sharing: Sharing,
    pub model: ModelChoice,
    /// Whether a plan uses every core of the host's pool.
    pub all_cores: bool,
    pub faults: Vec<FaultSpec>,
    /// Most bytes of the memory of each device that has its own.
    pub gpu_memory: Option<u64>,
    /// Compares the result with the sequential reference.
    pub verify: bool,
    /// Keeps the times of every command.
    pub traced: bool,
    /// Gets each step when it has ended.
    pub each_step: Option<fn(&StepRecord)>,
    /// For the report: the file of the first version, or of the kernel, and the seed.
    pub origin: (Option<String>, u64),
}

impl Divided {
    /// Steps of a workload, planned by nothing.
    pub fn new(work: Work, supersteps: Supersteps, sharing: Sharing) -> Self {
        Self {
            work,
            supersteps,
            plans_supersteps: PlansSupersteps::Never,
            plans_irregular: false,
            tolerance: None,
            sharing,
            model: ModelChoice::None,
            all_cores: true,
            faults: Vec::new(),
            gpu_memory: None,
            verify: false,
            traced: false,
            each_step: None,
            origin: (None, 0),
        }
    }

    /// The shape and the type of the result, if it is one array.
    pub fn result(&self) -> Option<(Vec<u64>, Precision)> {
        match &self.work {
            Work::Stencil(stencil) => {
                let (nx, ny, nz) = stencil.shape();
                let shape = nz.into_iter().chain([ny, nx]).collect();
                Some((shape, stencil.precision()))
            }
            Work::Product(spmv) => {
                let rows = spmv.matrix().rows();
                Some((vec![rows.into()], spmv.options().precision))
            }
            Work::Kernel { .. } => None,
        }
    }

    /// Whether it is run as such runs are by default.
    fn is_usual(&self) -> bool {
        let is_open = matches!(self.sharing, Sharing::Default | Sharing::Adaptive);
        is_open && self.faults.is_empty() && !self.model.is_named()
    }

    /// Whether it is said elsewhere how many steps are between two barriers.
    fn plans_supersteps(&self) -> bool {
        match self.plans_supersteps {
            PlansSupersteps::Never => false,
            PlansSupersteps::IfUsual => self.is_usual(),
            PlansSupersteps::Always => true,
        }
    }

    /// The workload, for reports.
    pub fn described(&self) -> Workload {
        let ((file, seed), steps) = (&self.origin, self.supersteps.steps());
        match &self.work {
            Work::Stencil(stencil) => {
                let origin = (file.clone(), *seed);
                Workload::of_stencil(stencil, self.supersteps, self.tolerance, origin)
            }
            Work::Product(spmv) => Workload::of_product(spmv, steps, self.tolerance, *seed),
            Work::Kernel { user, .. } => {
                Workload::of_kernel(user, file.as_deref().unwrap_or(""), steps, *seed)
            }
        }
    }
}

/// Makes the balancer that begins with a plan.
type MakePlanned = Arc<dyn Fn(&Setup) -> Result<Box<dyn Balancer>, Error> + Send + Sync>;

/// What a cost model plans.
struct Plan {
    stream: Stream,
    /// The number of cores, if it is not all.
    cores: Option<u32>,
    balancer: MakePlanned,
}

/// The plan that a run begins with under [`Strategy::Pdawl`], or why there is none.
struct Plans {
    plan: Result<Plan, Error>,
    /// What an adaptive run without a plan says.
    note: Option<String>,
    /// What every run says.
    notes: Vec<String>,
    /// How devices stream under other strategies.
    stream: Stream,
    /// What other steps between two barriers should take.
    others: Others,
}

/// Without cost models nothing is planned.
#[cfg(not(feature = "models"))]
mod planned {
    use super::{Device, Divided, Error, OpenDevices, Plans, Stream};
    use crate::balance::StrategyError;

    pub fn plans(_: &mut Divided, _: &OpenDevices, _: &[Device], _: bool) -> Result<Plans, Error> {
        Ok(Plans {
            plan: Err(StrategyError::NoModel.into()),
            note: None,
            notes: Vec::new(),
            stream: Stream::default(),
            others: Vec::new(),
        })
    }
}

/// How the steps of a prepared run are divided.
enum Chosen {
    By(Strategy),
    Own(String, MakeBalancer),
    /// A kernel that does not divide, on one device.
    Alone(usize),
}

/// A prepared run.
pub struct DividedRun<'s> {
    session: &'s mut Session,
    divided: Divided,
    options: Options,
    chosen: Chosen,
    plan: Result<Plan, Error>,
    /// The devices that have the memory, as a list, if they are not all.
    list: Option<String>,
    /// Those of the last run; before it, those that it will have.
    devices: Vec<Device>,
    /// Its kind, if it is run as such runs are by default.
    row: Option<Row>,
    notes: Vec<String>,
    _running: Running,
}

impl Session {
    /// Prepares a run of divided steps, which `stop` ends at a barrier when it is set.
    ///
    /// # Errors
    /// Faults that do not suit, a model or a strategy that cannot be had, and what is wrong with a
    /// kernel.
    pub fn divide(
        &mut self,
        mut divided: Divided,
        stop: &AtomicBool,
    ) -> Result<DividedRun<'_>, Error> {
        let running = self.running()?;
        self.clear(self.data);
        let (list, mut notes) = memory::with_memory(&divided, self.devices());
        let devices = match list.is_some() || !divided.faults.is_empty() {
            true => {
                self.devices.begin(list.as_deref())?;
                self.devices.runtime().devices().to_vec()
            }
            false => self.devices().to_vec(),
        };
        let is_known = known::set_superstep(&mut divided, &self.devices, &devices);
        let plans = planned::plans(&mut divided, &self.devices, &devices, is_known)?;
        let steps = divided.supersteps.count();
        self.devices.inject(&divided.faults, &devices, steps)?;
        let kinds: Vec<DeviceKind> = devices.iter().map(|device| device.kind).collect();
        if let Sharing::By(strategy) = &divided.sharing {
            strategy.suits(&kinds).map_err(|error| match list {
                None => error.into(),
                Some(_) => Error::LeftOut(error, notes.join("; ")),
            })?;
        }
        notes.extend(plans.notes);
        let on = (&devices[..], list.as_deref());
        let alone = self.alone(&mut divided, on, stop, &mut notes)?;
        let row = divided.is_usual().then(|| known::row(&divided, &devices));
        let superstep = divided.supersteps.size();
        let row = row.map(|row| row.with_superstep(superstep, plans.others));
        let is_measured = (row.as_ref()).is_some_and(|row| self.devices.known(row).is_some());
        let (chosen, note) = match (alone, &divided.sharing) {
            (Some(device), _) => (Chosen::Alone(device), None),
            (None, Sharing::Own(name, make)) => (Chosen::Own(name.clone(), Arc::clone(make)), None),
            (None, Sharing::By(strategy)) => (Chosen::By(strategy.clone()), None),
            (None, Sharing::Default | Sharing::Adaptive) => {
                let (strategy, note) = match &divided.work {
                    Work::Kernel { user, .. } => of_kernel(user, &divided.sharing, &kinds),
                    // What was measured of supersteps outranks their plan.
                    _ if superstep > 1 && is_measured => (Strategy::Dawl, None),
                    _ if plans.plan.is_ok() => (Strategy::Pdawl, None),
                    _ => (Strategy::Dawl, plans.note),
                };
                (Chosen::By(strategy), note)
            }
        };
        notes.extend(note);
        let plan = match (&chosen, plans.plan) {
            (Chosen::By(Strategy::Pdawl), Err(missing)) => return Err(missing),
            (_, plan) => plan,
        };
        let options = Options {
            tolerance: divided.tolerance,
            gpu_memory: divided.gpu_memory,
            stream: plans.stream,
            verify: divided.verify,
            trace: match divided.traced {
                true => Tracing::Commands,
                false => Tracing::Sums,
            },
            each_step: divided.each_step,
            ..Options::of(divided.supersteps)
        };
        // Where nobody names a strategy, a kernel that has one device runs by `cpu` or `gpu`.
        let learns = matches!(
            chosen,
            Chosen::By(Strategy::Dawl | Strategy::Pdawl | Strategy::Cpu | Strategy::Gpu)
        );
        Ok(DividedRun {
            session: self,
            divided,
            options,
            chosen,
            plan,
            list,
            devices,
            row: row.filter(|_| learns),
            notes,
            _running: running,
        })
    }
}

impl Session {
    /// Finds out how a kernel divides, if that is not known, on the device that is most likely the
    /// fastest of those that its strategy uses. Of a kernel that does not divide, that device.
    fn alone(
        &mut self,
        divided: &mut Divided,
        (devices, list): (&[Device], Option<&str>),
        stop: &AtomicBool,
        notes: &mut Vec<String>,
    ) -> Result<Option<usize>, Error> {
        let Work::Kernel { user, division } = &mut divided.work else {
            return Ok(None);
        };
        let wanted = |device: &Device| match divided.sharing {
            Sharing::By(Strategy::Cpu) => device.kind == DeviceKind::Cpu,
            Sharing::By(Strategy::Gpu) => device.kind != DeviceKind::Cpu,
            _ => true,
        };
        let best = likely_fastest(devices, wanted).unwrap_or(0);
        if division.is_none() {
            self.devices.begin(list)?;
            let trials = match (self.arrays_on, devices.len()) {
                (Some(_), 1) => SliceTrials::None,
                _ => SliceTrials::IfShort,
            };
            let (runtime, whole) = (self.devices.runtime(), user.as_ref().clone());
            let examined = examine(runtime, best, whole, trials, stop).map_err(refused)?;
            notes.extend(examined.notes);
            *division = Some(match examined.refusal {
                Some(why) => Division::Whole(why),
                None => Division::By(examined.user.axis(), examined.user.slices().clone()),
            });
            **user = examined.user;
        }
        match division {
            Some(Division::Whole(why)) => {
                let name = &devices[best].name;
                notes.push(format!(
                    "it is not divided, and runs on {name} alone: {why}"
                ));
                Ok(Some(best))
            }
            Some(Division::By(axis, slices)) => {
                **user = user.as_ref().clone().divided(*axis, slices.clone());
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// How the steps of a product are divided that stays open, and how devices stream.
    pub(super) fn division(&self, divided: &mut Divided) -> Result<(MakeBalancer, Stream), Error> {
        let plans = planned::plans(divided, &self.devices, self.devices(), false)?;
        let or_dawl = |made: Result<Box<dyn Balancer>, Error>, setup: &Setup| {
            made.unwrap_or_else(|_| Box::new(Dawl::new(setup)))
        };
        let strategy = match &divided.sharing {
            Sharing::Own(_, make) => return Ok((Arc::clone(make), plans.stream)),
            Sharing::By(Strategy::Pdawl) => {
                let Plan {
                    stream, balancer, ..
                } = plans.plan?;
                let make = move |setup: &Setup| or_dawl(balancer(setup), setup);
                return Ok((Arc::new(make), stream));
            }
            Sharing::By(strategy) => strategy.clone(),
            Sharing::Default | Sharing::Adaptive => Strategy::Dawl,
        };
        let make = move |setup: &Setup| or_dawl(strategy.build(setup).map_err(Error::from), setup);
        Ok((Arc::new(make), plans.stream))
    }
}

/// What is wrong with a kernel that was tried.
fn refused(error: CorunError) -> Error {
    match error {
        CorunError::PastEnd {
            kernel,
            name,
            argument,
            bytes,
            device,
        } => Error::Kernel(format!(
            "kernel `{kernel}` writes past the end of buffer `{name}` (argument {argument}, \
             {bytes} bytes) on {device}"
        )),
        error => error.into(),
    }
}

/// The strategy of a kernel for which none is asked, and a note if its file has the shares.
fn of_kernel(
    user: &UserKernel,
    sharing: &Sharing,
    kinds: &[DeviceKind],
) -> (Strategy, Option<String>) {
    let has = |cpu: bool| kinds.iter().any(|kind| (*kind == DeviceKind::Cpu) == cpu);
    let of_file = (user.kernel().partition)
        .filter(|_| matches!(sharing, Sharing::Default) && has(true) && has(false));
    let shares = of_file.and_then(|gpu| Shares::new(vec![1.0 - f64::from(gpu) / 10.0]).ok());
    match (kinds, shares) {
        ([kind], _) => (Strategy::lone(*kind), None),
        (_, Some(shares)) => {
            let note = "the shares are the file's `partition`; --adaptive learns them instead";
            (Strategy::Fixed(shares), Some(note.to_owned()))
        }
        (_, None) => (Strategy::Dawl, None),
    }
}

impl DividedRun<'_> {
    /// What is run, as far as it was planned and found out.
    pub fn divided(&self) -> &Divided {
        &self.divided
    }

    /// How its steps are divided, as reports say it.
    pub fn policy(&self) -> String {
        match &self.chosen {
            Chosen::By(strategy) => strategy.to_string(),
            Chosen::Own(name, _) => name.clone(),
            Chosen::Alone(device) => Strategy::lone(self.devices[*device].kind).to_string(),
        }
    }

    /// Runs it. `progress` gets the steps done and requested.
    ///
    /// # Errors
    /// When the engine refuses the run or cannot recover from a fault.
    pub fn run(
        &mut self,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u32, u32),
    ) -> Result<Run, Error> {
        let known = (self.row.as_ref()).and_then(|row| self.session.devices.known(row));
        let mut outcome = match (&self.chosen, &known) {
            (Chosen::By(Strategy::Oracle), _) => self.run_best(stop, progress)?,
            (Chosen::By(Strategy::Dawl), Some(known)) => {
                let make = |setup: &Setup| Ok(known::begun(setup, known));
                let mut outcome = self.corun(make, self.options, None, stop, progress)?;
                outcome.notes.push(known.note(&self.devices, " a step"));
                outcome
            }
            _ => self.run_chosen(stop, progress)?,
        };
        self.note_row(&mut outcome, known.as_ref().map(|known| &known.part[..]));
        let trace = std::mem::take(&mut outcome.trace);
        let mut context = Context {
            policy: self.policy(),
            ..self.session.context(self.divided.described())
        };
        context.machine.devices.clone_from(&self.devices);
        context.notes.extend_from_slice(&self.notes);
        let report = corun_report::report(&outcome, context, Vec::new());
        Ok(Run::new(report, trace).on_gpu(self.session.arrays_on))
    }

    fn run_chosen(
        &mut self,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u32, u32),
    ) -> Result<Outcome, Error> {
        let strategy = match (&self.chosen, &self.plan) {
            (Chosen::By(Strategy::Pdawl), Ok(plan)) => {
                let options = Options {
                    stream: plan.stream,
                    ..self.options
                };
                let (cores, make) = (plan.cores, Arc::clone(&plan.balancer));
                return self.corun(|setup| make(setup), options, cores, stop, progress);
            }
            (Chosen::Own(_, make), _) => {
                let make = Arc::clone(make);
                return self.corun(|setup| Ok(make(setup)), self.options, None, stop, progress);
            }
            (Chosen::Alone(_), _) if self.devices.len() == 1 => {
                Strategy::lone(self.devices[0].kind)
            }
            (Chosen::Alone(device), _) => Strategy::alone(*device, self.devices.len()),
            (Chosen::By(strategy), _) => strategy.clone(),
        };
        let make = |setup: &Setup| Ok(strategy.build(setup)?);
        self.corun(make, self.options, None, stop, progress)
    }

    /// One run of the engine.
    fn corun(
        &mut self,
        make: impl FnOnce(&Setup) -> Result<Box<dyn Balancer>, Error>,
        options: Options,
        cores: Option<u32>,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u32, u32),
    ) -> Result<Outcome, Error> {
        let list = cores.map(|cores| with_cores(cores, &self.devices));
        let devices = &mut self.session.devices;
        devices.begin(list.as_deref().or(self.list.as_deref()))?;
        let runtime = devices.runtime();
        self.devices = runtime.devices().to_vec();
        let corun = Corun::open(runtime, self.divided.work.divisible(), &options)?;
        let balancer = make(corun.setup())?;
        let outcome = corun.run(balancer, &mut Control { stop, progress })?;
        devices.end();
        Ok(outcome)
    }
}

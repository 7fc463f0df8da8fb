//! The run of a graph on the devices of a session, as often as wanted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::queues::Queues;
use super::reference::Reference;
use crate::engine::graph::kernel_seconds::KernelSeconds;
use crate::engine::graph::problem::KernelTimes;
use crate::engine::graph::search::{self, SearchResult};
use crate::engine::graph::{
    Control, Division, GraphRunError, GraphRuns, Options, PreparedGraph, Repetition, host_bytes,
    least_seconds, times,
};
use crate::graph::spec::starpu::Recording;
use crate::graph::{Components, DatumId, TaskGraph};
use crate::machine::host::Memory;
use crate::machine::{Device, MachineFile};
use crate::matrix::Shared;
use crate::policy::{
    MapError, NamedPolicy, Policy, PolicyOptions, Problem, Recorded, Search, Space, WINDOW,
};
use crate::quantity::Bytes;
use crate::report::run::graph;
use crate::report::run::workload::RecordingParameters;
use crate::report::{Context, Parameters, Workload};
use crate::runtime::Runtime;
use crate::session::elements::copied;
use crate::session::parts::{self, Chosen, TakingPart};
use crate::session::rows::Row;
use crate::session::{Error, FaultSpec, Run, Session};
use crate::time::Nanos;
use crate::workload::task_set::{Body, TaskSet};

/// Rounds of a search: the first tries everything, each later one the better half again.
const ROUNDS: usize = 4;

/// Most queues that a search tries, as in the paper.
const SEARCHED_QUEUES: usize = 5;

/// A graph that is to run.
pub struct GraphJob {
    /// For the report.
    pub workload: Workload,
    pub graph: Arc<TaskGraph>,
    pub placed: Placed,
    /// Whether its kernels compute anything.
    pub computes: bool,
    /// What its results are compared with.
    pub reference: Option<Reference>,
}

/// What policies place.
pub enum Placed {
    /// Components, or kernels by policies that place kernels.
    Components(Arc<Components>),
    Kernels,
    /// Tasks of a set, whose seconds are those of a sample.
    Set(Sample),
}

/// What the seconds of tasks follow from.
pub enum Sample {
    /// A few of them, which are measured.
    Tasks(Arc<TaskGraph>),
    Known(KernelSeconds),
    /// Nothing: the machine file has all seconds. Devices without run nothing of a codelet.
    OfMachine,
}

/// The policy of a run.
pub enum GraphPolicy {
    Named(NamedPolicy),
    /// One of the user's, made for the tasks and devices.
    Own(MakePolicy),
}

/// Makes a policy for a problem.
pub type MakePolicy = Box<dyn FnOnce(Problem) -> Box<dyn Policy>>;

impl GraphPolicy {
    /// That of a recorded schedule: by kernel, its device and its place in the order of all.
    pub fn recorded(schedule: Vec<(usize, usize)>) -> Self {
        Self::Own(Box::new(|problem| {
            Box::new(Recorded::new(problem, schedule))
        }))
    }

    /// Whether it places single kernels.
    fn places_kernels(&self) -> bool {
        match self {
            Self::Named(named) => named.places_kernels(),
            Self::Own(_) => true,
        }
    }

    fn needs_times(&self) -> bool {
        match self {
            Self::Named(named) => named.needs_times(),
            Self::Own(_) => true,
        }
    }

    fn make(self, problem: Problem, options: &PolicyOptions) -> Result<Box<dyn Policy>, MapError> {
        match self {
            Self::Named(named) => named.policy(problem, options),
            Self::Own(make) => Ok(make(problem)),
        }
    }
}

/// How a graph runs.
pub struct GraphOptions {
    pub policy: GraphPolicy,
    /// Components that a device has at once; `None`: the policy's default, of a set 16.
    pub window: Option<usize>,
    /// Components of each level on CPUs, under a policy that takes a map.
    pub on_cpu: usize,
    /// Searches for the best map and queues by running; of components.
    pub search: bool,
    /// Command queues of each device; `None`: those that suit.
    pub queues: Option<Queues>,
    /// Queues that a component's kernels are spread over in turns; `None`: so many that all
    /// components of a level have their own.
    pub component_queues: Option<usize>,
    /// Timed runs, after one that is not timed on real devices and of components; `None`: one run.
    pub repeats: Option<u32>,
    /// Leaves given data on the devices from run to run.
    pub keep_inputs: bool,
    /// Of the policy's random choices.
    pub seed: u64,
    pub faults: Vec<FaultSpec>,
    /// The most bytes of the memory of each device that has its own, and of the host's.
    pub gpu_memory: Option<u64>,
    pub host_memory: Option<u64>,
    /// Compares the results with the reference.
    pub verify: bool,
    /// Keeps the times of every command.
    pub traced: bool,
    /// The data whose contents are wanted.
    pub results: Vec<DatumId>,
    /// The devices that take part.
    pub part: TakingPart,
}

impl GraphOptions {
    /// One run by a policy.
    pub fn of(policy: NamedPolicy) -> Self {
        Self {
            policy: GraphPolicy::Named(policy),
            window: None,
            on_cpu: 0,
            search: false,
            queues: None,
            component_queues: None,
            repeats: None,
            keep_inputs: false,
            seed: 0,
            faults: Vec::new(),
            gpu_memory: None,
            host_memory: None,
            verify: false,
            traced: false,
            results: Vec::new(),
            part: TakingPart::Open,
        }
    }

    /// Whether it is run as it is by default, so that it tells what others take.
    pub(in crate::session) fn is_usual(&self, usual: NamedPolicy) -> bool {
        let of_named =
            |policy: &GraphPolicy| matches!(policy, GraphPolicy::Named(named) if *named == usual);
        of_named(&self.policy) && self.faults.is_empty() && !self.search
    }

    /// What the policy is made with, for a set of tasks or for other graphs.
    pub(in crate::session) fn of_policy(&self, is_set: bool) -> PolicyOptions {
        PolicyOptions {
            // Tasks of a set share data, which are to be loaded ahead under any policy.
            window: self.window.or(is_set.then_some(WINDOW)),
            on_cpu: self.on_cpu,
            seed: self.seed,
        }
    }
}

/// What a run does, for who shows its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Searches,
    Runs,
    Compares,
}

/// Gets what is being done, how much of it is done, and all, or 0 if that is not known.
pub type Progress<'a> = &'a mut dyn FnMut(Stage, usize, usize);

/// What came of a run.
pub struct GraphRan {
    pub run: Run,
    /// The contents of the wanted data; of none if the run was interrupted.
    pub contents: BTreeMap<DatumId, Shared<u8>>,
}

/// What came of the runs of a graph.
pub(in crate::session) struct Executed {
    pub ran: GraphRuns,
    pub components: Arc<Components>,
    pub search: Option<SearchResult>,
    /// When its devices were opened, by their clock.
    pub begun: Nanos,
    /// Of its tasks, if it is a set.
    pub seconds: KernelSeconds,
    /// What reports have beside outcomes.
    pub context: Context,
}

/// Does what remains when a graph has run, and is told whether it has results.
pub(in crate::session) type Finish<'a> =
    &'a mut dyn FnMut(&PreparedGraph, &mut dyn Runtime, bool) -> Result<(), Error>;

impl Session {
    /// Runs a graph. A run that `stop` ends early says so in its report, and has no results.
    ///
    /// # Errors
    /// What does not fit in memory, faults, queues and maps that do not suit, and what the engine
    /// refuses or cannot recover from.
    pub fn run_graph(
        &mut self,
        job: &GraphJob,
        options: GraphOptions,
        stop: &AtomicBool,
        progress: Progress,
    ) -> Result<GraphRan, Error> {
        let began = Instant::now();
        let _running = self.running()?;
        self.fits_graph(job, &options)?;
        let GraphOptions {
            window,
            gpu_memory,
            verify,
            ..
        } = options;
        let (wanted, arrays_on) = (options.results.clone(), self.arrays_on);
        let (mut verified, mut contents) = (None, BTreeMap::new());
        let mut finish =
            |prepared: &PreparedGraph, runtime: &mut dyn Runtime, has_results: bool| {
                if !has_results {
                    return Ok(());
                }
                if let Some(reference) = job.reference.as_ref().filter(|_| verify) {
                    verified = reference.compare(prepared, runtime, stop)?;
                }
                for datum in &wanted {
                    let bytes = prepared.bytes(runtime, *datum)?;
                    contents.insert(*datum, copied(arrays_on, bytes)?);
                }
                Ok(())
            };
        let executed = self.execute(job, options, &mut finish, (stop, progress))?;
        let Executed { mut ran, .. } = executed;
        ran.last.interrupted |= stop.load(Ordering::Relaxed);
        let report = match &job.placed {
            Placed::Set(_) => {
                let devices = &executed.context.machine.devices;
                let least = (self.devices.simulation())
                    .and_then(|(file, _)| least_seconds(&job.graph, file, devices));
                let measured = graph::MeasuredTasks {
                    window,
                    gpu_memory_bytes: gpu_memory,
                    least_seconds: least,
                    setup_seconds: ran.began.duration_since(began).as_secs_f64(),
                };
                graph::report_tasks(&ran, &job.graph, executed.context, measured, None)
            }
            Placed::Components(_) | Placed::Kernels => {
                let measured = graph::Measured {
                    setup_seconds: ran.ready.saturating_sub(executed.begun) as f64 / 1e9,
                    search: executed.search,
                    verified,
                };
                let of = (&*job.graph, &*executed.components);
                graph::report(&ran, of, executed.context, measured)
            }
        };
        if ran.last.interrupted {
            contents.clear();
        }
        Ok(GraphRan {
            run: Run::new(report, ran.last.trace).on_gpu(self.arrays_on),
            contents,
        })
    }

    /// Runs a graph, and finishes it before its memory is given back.
    ///
    /// # Errors
    /// As [`Self::run_graph`], and those of `finish`.
    pub(in crate::session) fn execute(
        &mut self,
        job: &GraphJob,
        mut options: GraphOptions,
        finish: Finish,
        (stop, progress): (&AtomicBool, Progress),
    ) -> Result<Executed, Error> {
        let simulated = self.is_simulated();
        let has_data = job.computes && (self.data || !simulated);
        self.clear(has_data);
        let (components, steps) = job.components(&options);
        let devices = self.devices().to_vec();
        let all: Vec<usize> = (0..devices.len()).collect();
        let usual = match job.placed {
            Placed::Set(_) => Some(NamedPolicy::LOCALITY),
            Placed::Components(_) => Some(NamedPolicy::ADAPTIVE),
            Placed::Kernels => None,
        };
        let may_choose = usual.and_then(|usual| self.may_choose(&options, usual));
        let is_open = matches!(options.part, TakingPart::Open);
        // Components are tried in each run, which also makes devices ready.
        let is_kept = is_open && options.is_usual(NamedPolicy::LOCALITY);
        let row = (is_kept && matches!(job.placed, Placed::Set(_))).then(|| {
            let of = format!("{:?} {:?}", options.gpu_memory, options.window);
            Row::of(&job.workload, &of, &devices)
        });
        let known = row.as_ref().filter(|_| may_choose.is_some());
        if let Some(known) = known.and_then(|row| self.devices.known(row)) {
            options.part = TakingPart::Known(known.chosen(&devices));
        }
        let (seconds, times) = match &job.placed {
            Placed::Set(sample) => {
                self.check_tasks(&job.graph, options.gpu_memory)?;
                let kept = || self.devices.known_tasks(row.as_ref()?, &all);
                let seconds = match (sample, kept()) {
                    (Sample::Known(seconds), _) => seconds.clone(),
                    (_, Some((seconds, _))) => seconds,
                    (Sample::Tasks(few), _) => (self.devices)
                        .without_data(|runtime| KernelSeconds::measure(runtime, few, stop))??,
                    (Sample::OfMachine, _) => KernelSeconds::default(),
                };
                let simulation = self.devices.simulation();
                let times = match (sample, simulation) {
                    (Sample::OfMachine, Some((file, _))) => of_machine(file, &job.graph, &devices),
                    _ => seconds.of(&job.graph),
                };
                (seconds, Some(times))
            }
            Placed::Components(_) | Placed::Kernels => (KernelSeconds::default(), None),
        };
        self.devices.inject(&options.faults, &devices, steps)?;
        self.devices.begin(None)?;
        let policy = match &options.policy {
            GraphPolicy::Named(policy) => Some(policy.to_string()),
            GraphPolicy::Own(_) => None,
        };
        options.traced |= simulated && matches!(job.placed, Placed::Components(_));
        let runtime = self.devices.runtime();
        let begun = runtime.now();
        let times = match times {
            Some(times) => times,
            None if options.policy.needs_times() => {
                times::measure(runtime, &job.graph, options.gpu_memory, 1, &|_| true, stop)?.0
            }
            None => KernelTimes::new(),
        };
        let mut engine = job.engine_options(&options, &components, runtime.devices())?;
        let (graph, memory) = (&job.graph, options.gpu_memory);
        let mut division = Division::new(runtime, graph, Arc::clone(&components), &times, memory)?;
        if let Placed::Set(Sample::OfMachine) = &job.placed {
            for (task, seconds) in division.problem.tasks.iter_mut().zip(&times) {
                task.seconds.clone_from(seconds);
            }
        }
        let chosen = match (&options.part, may_choose) {
            (TakingPart::Known(part), _) => Ok(part.clone()),
            (TakingPart::Open, Some(policy)) => {
                let is_set = matches!(job.placed, Placed::Set(_));
                let of_policy = (policy, &options.of_policy(is_set));
                let tried = (!is_set).then_some(&engine);
                choose(&mut division, runtime, of_policy, tried, stop)
            }
            (TakingPart::Open, None) => Ok(Chosen::all(devices.len())),
        };
        let chosen = match chosen {
            Ok(chosen) => chosen,
            Err(error) => {
                division.release(runtime);
                return Err(error);
            }
        };
        let is_part = chosen.part.len() < devices.len();
        let of_part = || parts::of_part(division.problem.clone(), &chosen.part);
        if let Some(problem) = is_part.then(of_part).flatten() {
            division.problem = problem;
        }
        let mut lost = None;
        let mut ran = || -> Result<_, Error> {
            let search = search(
                &mut division,
                runtime,
                &mut options,
                &mut engine,
                (stop, progress),
            )?;
            let run = |division: &mut Division,
                       runtime: &mut dyn Runtime,
                       options: &mut _,
                       progress: Progress| {
                job.repeat(
                    division,
                    runtime,
                    (options, simulated),
                    &engine,
                    (stop, progress),
                )
            };
            let ran = match run(&mut division, runtime, &mut options, progress) {
                // Devices that had no part take over.
                Err(Error::GraphRun(why @ GraphRunError::Lost { .. })) if is_part => {
                    lost = Some(why.to_string());
                    options.policy = GraphPolicy::Named(NamedPolicy::LOCALITY);
                    let of_all =
                        Division::new(runtime, graph, Arc::clone(&components), &times, memory)?;
                    std::mem::replace(&mut division, of_all).release(runtime);
                    run(&mut division, runtime, &mut options, progress)?
                }
                ran => ran?,
            };
            let is_complete = !ran.last.interrupted && !stop.load(Ordering::Relaxed);
            if is_complete && options.verify && job.reference.is_some() {
                progress(Stage::Compares, 0, 0);
            }
            finish(&division.prepared, runtime, is_complete && has_data)?;
            Ok((ran, search))
        };
        let ran = ran();
        division.release(runtime);
        let (ran, search) = ran?;
        self.devices.end();
        let mut context = Context {
            policy: policy.unwrap_or_else(|| ran.last.policy.to_owned()),
            ..self.context(job.workload.clone())
        };
        if let (Some(row), Some(took), None) = (row, ran.took(), &lost) {
            self.devices.note_tasks(&row, &all, (seconds.clone(), None));
            self.devices.note(&row, &chosen, (took, Vec::new()), None);
        }
        context.notes.extend(chosen.note.into_iter().chain(lost));
        Ok(Executed {
            ran,
            components,
            search,
            begun,
            seconds,
            context,
        })
    }

    /// The policy of a run whose devices may be chosen: the usual one, where nobody has named devices
    /// or searches for a map, and no device has a fault to come.
    pub(in crate::session) fn may_choose(
        &self,
        options: &GraphOptions,
        usual: NamedPolicy,
    ) -> Option<NamedPolicy> {
        let is_free = self.devices().len() > 1 && !self.devices.is_named;
        (is_free && options.is_usual(usual)).then_some(usual)
    }

    /// Checks that the data of a graph fit in the memory of the machine's host, and of this one
    /// if they are here.
    fn fits_graph(&self, job: &GraphJob, options: &GraphOptions) -> Result<(), Error> {
        let machine = &self.devices.machine;
        let has_data = job.computes && (self.data || !machine.simulated);
        let data = host_bytes(
            &job.graph,
            &Components::single_kernels(&job.graph),
            &machine.devices,
        );
        let compared = match (&job.reference, options.verify) {
            (Some(reference), true) => reference.memory(&job.graph),
            _ => 0,
        };
        let here = Memory::obtainable_now();
        let here = here.min(options.host_memory.unwrap_or(u64::MAX));
        let all = job.graph.data();
        let what = match all.iter().max_by_key(|datum| datum.bytes) {
            Some(largest) => format!(
                "{} (the largest of its data, {}, is {})",
                job.workload.title,
                largest.name,
                Bytes(largest.bytes)
            ),
            None => job.workload.title.clone(),
        };
        if machine.simulated {
            Error::unless_free(what.clone(), data, machine.host.memory)?;
        }
        match (machine.simulated, has_data) {
            (true, false) => Ok(()),
            (false, _) => Error::unless_free(what, data.saturating_add(compared), here),
            // The memory of simulated devices is here, too.
            (true, true) => {
                let all = all.iter().map(|datum| datum.bytes);
                let both = all.fold(0, u64::saturating_add).saturating_mul(2);
                Error::unless_free(what, both.saturating_add(compared), here)
            }
        }
    }
}

impl GraphJob {
    /// A set of tasks that share data.
    ///
    /// # Errors
    /// A set that cannot be.
    pub fn of_set(set: &TaskSet) -> Result<Self, Error> {
        let graph = set.graph()?;
        Ok(Self {
            workload: Workload::of_set(set, &graph),
            graph: Arc::new(graph),
            placed: Placed::Set(Sample::Tasks(Arc::new(set.sample().graph()?))),
            computes: !matches!(set.body, Body::Model),
            reference: None,
        })
    }

    /// The tasks of a recorded run, which is called so.
    pub fn of_recording(recording: &Recording, name: String, seed: u64) -> Self {
        let kernels = recording.graph.kernels();
        let parameters = RecordingParameters {
            recording: name,
            tasks: kernels.len(),
            flops: kernels.iter().map(|kernel| kernel.cost.flops).sum(),
            recorded_seconds: recording.seconds,
            seed,
        };
        Self {
            workload: Workload::new("dag", Parameters::Recording(parameters)),
            graph: Arc::new(recording.graph.clone()),
            placed: Placed::Set(Sample::OfMachine),
            computes: false,
            reference: None,
        }
    }

    /// The data that it gives back.
    pub fn wanted(&self) -> Vec<DatumId> {
        let data = self.graph.data().iter().enumerate();
        data.filter(|(_, datum)| datum.wanted)
            .map(|(index, _)| DatumId(index))
            .collect()
    }

    /// What the policy places, and the levels at which simulated faults may happen.
    fn components(&self, options: &GraphOptions) -> (Arc<Components>, u32) {
        let single = || Arc::new(Components::single_kernels(&self.graph));
        match &self.placed {
            Placed::Components(components) => {
                let levels = components.list().iter().map(|c| c.level + 1).max();
                let components = match options.policy.places_kernels() {
                    true => single(),
                    false => Arc::clone(components),
                };
                (components, levels.unwrap_or(1) as u32)
            }
            Placed::Kernels | Placed::Set(_) => (single(), 1),
        }
    }

    /// How the engine runs it.
    fn engine_options(
        &self,
        options: &GraphOptions,
        components: &Components,
        devices: &[Device],
    ) -> Result<Options, Error> {
        let engine = match (&options.queues, &self.placed) {
            (None, Placed::Kernels | Placed::Set(_)) => Options::of_tasks(&self.graph, devices),
            (queues, _) => {
                let none = Queues::default();
                let single = options.policy.places_kernels();
                let queues = queues.as_ref().unwrap_or(&none).of(devices, single)?;
                let levels = components.list().iter().map(|c| c.level);
                let mut sizes = vec![0usize; components.len()];
                levels.for_each(|level| sizes[level] += 1);
                let widest = sizes.into_iter().max().unwrap_or(1).max(1);
                let width = |queues: &usize| match options.component_queues {
                    Some(width) => width,
                    None => queues.div_ceil(widest),
                };
                Options {
                    widths: queues.iter().map(width).collect(),
                    ..Options::queues(queues)
                }
            }
        };
        Ok(Options {
            trace: options.traced,
            keep: options.keep_inputs,
            ..engine
        })
    }

    /// Runs it as often as its options say.
    fn repeat(
        &self,
        division: &mut Division,
        runtime: &mut dyn Runtime,
        (options, simulated): (&mut GraphOptions, bool),
        engine: &Options,
        (stop, progress): (&AtomicBool, Progress),
    ) -> Result<GraphRuns, Error> {
        let is_of_components = matches!(self.placed, Placed::Components(_));
        let repeats = match options.repeats {
            None => Repetition::ONCE,
            Some(timed) => Repetition {
                timed,
                // A device that is to be lost would be lost in a run that is not timed.
                warms_up: is_of_components || (!simulated && options.faults.is_empty()),
                traces_apart: is_of_components || !simulated,
            },
        };
        let of_policy = options.of_policy(matches!(self.placed, Placed::Set(_)));
        // It is made once, and its name is known.
        let policy = GraphPolicy::Named(NamedPolicy::LOCALITY);
        let policy = std::mem::replace(&mut options.policy, policy);
        let make = |problem| policy.make(problem, &of_policy);
        let mut control = Control {
            stop,
            progress: &mut |done, all| progress(Stage::Runs, done, all),
        };
        Ok(division.repeat(runtime, make, engine, &repeats, &mut control)?)
    }
}

/// The seconds of kernels that a machine file has by their codelets.
fn of_machine(file: &MachineFile, graph: &TaskGraph, devices: &[Device]) -> KernelTimes {
    let tables = devices.iter().map(|device| {
        let spec = file.devices.iter().find(|spec| spec.name == device.name);
        spec.map(|spec| &spec.seconds)
    });
    let tables: Vec<_> = tables.collect();
    let kernels = graph.kernels().iter().map(|kernel| &*kernel.codelet.name);
    let of = |codelet: &str| {
        tables
            .iter()
            .map(|of| (*of)?.get(codelet).copied())
            .collect()
    };
    kernels.map(of).collect()
}

/// The part of a division that is expected to be fastest, or that was in trials, if it is to be
/// tried as the engine runs it.
fn choose(
    division: &mut Division,
    runtime: &mut dyn Runtime,
    (policy, of_policy): (NamedPolicy, &PolicyOptions),
    tried: Option<&Options>,
    stop: &AtomicBool,
) -> Result<Chosen, Error> {
    let devices = runtime.devices().to_vec();
    let of_all = division.problem.clone();
    let all = parts::parts(&devices).into_iter();
    let problems = all.map(|part| (part, of_all.clone()));
    let Some(engine) = tried else {
        return Ok(parts::best(&devices, policy, of_policy, problems)?.0);
    };
    let problems = problems.filter_map(|(part, problem)| {
        let problem = parts::of_part(problem, &part)?;
        Some((part, problem))
    });
    let untraced = Options {
        trace: false,
        ..engine.clone()
    };
    let mut seconds = |problem: &Problem, runs: &Repetition| {
        division.problem.clone_from(problem);
        let make = |problem| policy.policy(problem, of_policy);
        let mut control = Control {
            stop,
            progress: &mut |_, _| {},
        };
        match division.repeat(runtime, make, &untraced, runs, &mut control) {
            Err(GraphRunError::Lost { .. }) => Ok::<_, Error>(None),
            ran => {
                let timed = ran?.timed;
                Ok(timed.iter().map(|run| run.seconds).reduce(f64::min))
            }
        }
    };
    let best = parts::tried(&devices, problems.collect(), &mut seconds);
    division.problem = of_all;
    best
}

/// Searches for the best map and queues, if that is wanted, and takes them.
fn search(
    division: &mut Division,
    runtime: &mut dyn Runtime,
    options: &mut GraphOptions,
    engine: &mut Options,
    (stop, progress): (&AtomicBool, Progress),
) -> Result<Option<SearchResult>, Error> {
    let Division { problem, prepared } = division;
    let (on_cpu, levels) = (options.on_cpu, problem.levels());
    let widest = levels.iter().map(Vec::len).max().unwrap_or(0);
    if on_cpu > widest {
        return Err(MapError::Wide { on_cpu, widest }.into());
    }
    if !options.search {
        return Ok(None);
    }
    let search = Search::new(space(problem, widest).configurations(widest), ROUNDS);
    let mut control = Control {
        stop,
        progress: &mut |runs, _| progress(Stage::Searches, runs, 0),
    };
    let found = search::search(runtime, prepared, problem, search, engine, &mut control)?;
    if let Some((best, _)) = &found.best {
        *engine = search::options(best, problem, engine);
        options.on_cpu = best.h_cpu;
    }
    Ok(Some(found))
}

/// What a search tries: the paper's queues, more of them on GPUs, and up to all components of a
/// level on CPUs.
fn space(problem: &Problem, components: usize) -> Space {
    let kinds = problem.devices.iter().map(|device| device.kind);
    let q_cpu: Vec<usize> = (1..=SEARCHED_QUEUES).collect();
    let q_gpu = q_cpu.iter().copied().chain([8, 16]).collect();
    Space::on(kinds, (q_gpu, q_cpu), components, components)
}

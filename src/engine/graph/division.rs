//! A graph divided into components, ready on a runtime, with what policies know of it. It runs as
//! often as wanted.

use super::problem::{KernelTimes, problem};
use super::{Control, GraphOutcome, GraphRunError, Options, PreparedGraph, abilities};
use crate::policy::{Finished, MapError, Policy, Prefetch, Problem};
use crate::runtime::Runtime;
use crate::time::Nanos;
use pdawl_core::graph::{Components, TaskGraph};
use std::cell::Cell;
use std::iter::repeat_n;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A divided graph. It belongs to the runtime that it was made with; release it there.
pub struct Division {
    pub problem: Problem,
    pub prepared: PreparedGraph,
}

/// Runs one after the other, of which the last one has the results.
#[derive(Clone, Copy, Debug)]
pub struct Repetition {
    /// Those that are timed; at least one is.
    pub timed: u32,
    /// Whether one that is not timed comes first: real devices are slower in it, and some
    /// policies learn in it.
    pub warms_up: bool,
    /// Whether a trace takes runs of its own after the timed ones, as it slows them.
    pub traces_apart: bool,
}

impl Repetition {
    /// A single run.
    pub const ONCE: Self = Self {
        timed: 1,
        warms_up: false,
        traces_apart: false,
    };

    /// Two runs after one that is not timed, whose times are compared with those of others.
    pub const TRIALS: Self = Self {
        timed: 2,
        warms_up: true,
        traces_apart: false,
    };
}

/// What came of the runs.
pub struct GraphRuns {
    /// The last run, with its trace if that is wanted.
    pub last: GraphOutcome,
    /// The real seconds in which the policy was made, and decided in the last run. A simulated
    /// time does not contain them.
    pub deciding_seconds: f64,
    /// The timed runs that ended.
    pub timed: Vec<TimedRun>,
    /// The outcomes of runs before the last one that lost devices: a device that stays lost
    /// takes no part in later runs, which do not tell it.
    pub lossy: Vec<GraphOutcome>,
    /// When the first timed run began, in real time, and by the runtime's clock.
    pub began: Instant,
    pub ready: Nanos,
}

impl GraphRuns {
    /// The seconds of the fastest timed run, if no run was interrupted or lost a device.
    pub fn took(&self) -> Option<f64> {
        let is_whole = !self.last.interrupted && self.last.losses.is_empty();
        let seconds = self.timed.iter().map(|run| run.seconds);
        let is_whole = is_whole && self.lossy.is_empty();
        seconds.reduce(f64::min).filter(|_| is_whole)
    }
}

/// The seconds of a timed run, and those of the host and of driver calls a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedRun {
    pub seconds: f64,
    pub host_seconds_per_kernel: f64,
    pub driver_seconds_per_kernel: f64,
}

impl From<&GraphOutcome> for TimedRun {
    fn from(run: &GraphOutcome) -> Self {
        Self {
            seconds: run.seconds,
            host_seconds_per_kernel: run.host_seconds_per_kernel(),
            driver_seconds_per_kernel: run.driver_seconds_per_kernel(),
        }
    }
}

impl GraphRuns {
    /// The seconds of the timed runs.
    pub fn seconds(&self) -> Vec<f64> {
        self.timed.iter().map(|run| run.seconds).collect()
    }
}

impl Division {
    /// Divides a graph; `times` of its kernels as far as they are known, and the most bytes of
    /// each device's own memory that are used, which policies know, too. The first run
    /// allocates the memory.
    ///
    /// # Errors
    /// As [`PreparedGraph::new`].
    pub fn new(
        runtime: &dyn Runtime,
        graph: &Arc<TaskGraph>,
        components: Arc<Components>,
        times: &KernelTimes,
        memory: Option<u64>,
    ) -> Result<Self, GraphRunError> {
        let mut division = Self {
            problem: Self::problem(runtime, graph, &components, times, memory),
            prepared: PreparedGraph::new(runtime, Arc::clone(graph), components)?,
        };
        if let Some(bytes) = memory {
            division.prepared.limit_memory(bytes);
        }
        Ok(division)
    }

    /// What policies know of a graph that is divided so.
    pub fn problem(
        runtime: &dyn Runtime,
        graph: &TaskGraph,
        components: &Components,
        times: &KernelTimes,
        memory: Option<u64>,
    ) -> Problem {
        let able = abilities(graph, components, runtime.devices());
        let mut problem = problem(graph, components, runtime, &able, times);
        let devices = problem.devices.iter_mut();
        for own in devices.filter_map(|device| device.memory.as_mut()) {
            *own = memory.unwrap_or(u64::MAX).min(*own);
        }
        problem
    }

    /// Runs the graph several times by one policy, until a run is interrupted. Memory and
    /// kernels are made before a run's time begins.
    ///
    /// # Errors
    /// What the engine refuses or cannot recover from.
    pub fn repeat(
        &mut self,
        runtime: &mut dyn Runtime,
        make: impl FnOnce(Problem) -> Result<Box<dyn Policy>, MapError>,
        options: &Options,
        repeats: &Repetition,
        control: &mut Control,
    ) -> Result<GraphRuns, GraphRunError> {
        let making = Instant::now();
        let policy = make(self.problem.clone())?;
        let mut policy = Timed::new(policy, making.elapsed());
        let apart = options.trace && repeats.traces_apart;
        // Whether it is timed, and whether it is traced. The first run with profiling queues
        // opens them.
        let runs = repeat_n((false, false), repeats.warms_up.into())
            .chain(repeat_n(
                (true, options.trace && !apart),
                repeats.timed.max(1) as usize,
            ))
            .chain(repeat_n((false, true), if apart { 2 } else { 0 }));
        let (mut timed, mut lossy) = (Vec::new(), Vec::new());
        let (mut began, mut last) = (None, None::<GraphOutcome>);
        for (is_timed, trace) in runs {
            if last.as_ref().is_some_and(|last| last.interrupted) {
                break;
            }
            if is_timed {
                began.get_or_insert_with(|| (Instant::now(), runtime.now()));
            }
            policy.restart();
            let options = Options {
                trace,
                trial: !is_timed && !trace,
                ..options.clone()
            };
            self.prepared.prepare(runtime, &mut policy, &options)?;
            let run = (self.prepared).run(runtime, &mut policy, &options, control)?;
            if is_timed && !run.interrupted {
                timed.push(TimedRun::from(&run));
            }
            let before = last.replace(run);
            lossy.extend(before.filter(|before| !before.losses.is_empty()));
        }
        let Some(last) = last else {
            unreachable!("at least one run is timed");
        };
        let (began, ready) = began.unwrap_or_else(|| (Instant::now(), runtime.now()));
        Ok(GraphRuns {
            last,
            deciding_seconds: policy.seconds(),
            timed,
            lossy,
            began,
            ready,
        })
    }

    /// Gives memory and queues back.
    pub fn release(self, runtime: &mut dyn Runtime) {
        self.prepared.release(runtime);
    }
}

/// A policy, and the real time that passed within its calls.
pub(super) struct Timed {
    policy: Box<dyn Policy>,
    making: Duration,
    spent: Cell<Duration>,
}

impl Timed {
    /// The policy, which took so long to make.
    pub fn new(policy: Box<dyn Policy>, making: Duration) -> Self {
        Self {
            policy,
            making,
            spent: Cell::new(making),
        }
    }

    /// Another run begins: seconds count from here, with the making.
    pub fn restart(&self) {
        self.spent.set(self.making);
    }

    /// Seconds of the run until now.
    pub fn seconds(&self) -> f64 {
        self.spent.get().as_secs_f64()
    }

    fn ask<T>(&self, question: impl FnOnce(&dyn Policy) -> T) -> T {
        let began = Instant::now();
        let answer = question(self.policy.as_ref());
        self.spent.set(self.spent.get() + began.elapsed());
        answer
    }

    fn tell<T>(&mut self, event: impl FnOnce(&mut dyn Policy) -> T) -> T {
        let began = Instant::now();
        let answer = event(self.policy.as_mut());
        self.spent.set(self.spent.get() + began.elapsed());
        answer
    }
}

impl Policy for Timed {
    fn name(&self) -> &'static str {
        self.policy.name()
    }

    fn may_run(&self, component: usize, device: usize) -> bool {
        self.ask(|policy| policy.may_run(component, device))
    }

    fn certain(&self, component: usize) -> Option<usize> {
        self.ask(|policy| policy.certain(component))
    }

    fn window(&self) -> Option<usize> {
        self.policy.window()
    }

    fn begins(&self, prepared: &[usize]) -> usize {
        self.ask(|policy| policy.begins(prepared))
    }

    fn begin(&mut self) {
        self.tell(|policy| policy.begin());
    }

    fn ready(&mut self, component: usize, now: Nanos) {
        self.tell(|policy| policy.ready(component, now));
    }

    fn next(&mut self, device: usize, now: Nanos) -> Option<usize> {
        self.tell(|policy| policy.next(device, now))
    }

    fn prefetch(&mut self, device: usize) -> Option<Prefetch> {
        self.tell(|policy| policy.prefetch(device))
    }

    fn finished(&mut self, finished: &Finished) {
        self.tell(|policy| policy.finished(finished));
    }

    fn lost(&mut self, device: usize) {
        self.tell(|policy| policy.lost(device));
    }

    fn returned(&mut self, device: usize) {
        self.tell(|policy| policy.returned(device));
    }

    fn arrived(&mut self, device: usize, datum: usize) {
        self.tell(|policy| policy.arrived(device, datum));
    }

    fn evicted(&mut self, device: usize, datum: usize) {
        self.tell(|policy| policy.evicted(device, datum));
    }

    fn victim(&mut self, device: usize, evictable: &dyn Fn(usize) -> bool) -> Option<usize> {
        self.tell(|policy| policy.victim(device, evictable))
    }
}

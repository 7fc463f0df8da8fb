//! Tasks on the devices of a runtime, which run as often as wanted.

use std::iter::repeat_n;
use std::sync::Arc;
use std::time::Instant;

use super::division::Division;
use super::kernel_seconds::KernelSeconds;
use super::timed::Timed;
use super::{Control, GraphOutcome, GraphRunError, Options, PreparedGraph};
use crate::policy::{NamedPolicy, PolicyOptions, WINDOW};
use crate::runtime::Runtime;
use pdawl_core::graph::{Components, TaskGraph};

/// A policy for one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyChoice {
    pub policy: NamedPolicy,
    /// Tasks that a device has at once; `None`: [`WINDOW`].
    pub window: Option<usize>,
    /// Of the policy's random choices.
    pub seed: u64,
}

/// Tasks that are ready to run. They belong to the runtime that they were opened on;
/// release them there.
pub struct OpenTasks {
    division: Division,
}

/// Runs one after the other, of which the last one has the results.
#[derive(Clone, Copy, Debug)]
pub struct Repetition {
    /// Those that are timed; at least one is.
    pub timed: u32,
    /// Whether one that is not timed comes first: real devices are slower in it.
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
}

/// What came of the runs.
pub struct TaskRuns {
    /// The last run, with its trace if that is wanted.
    pub last: TaskRun,
    /// Seconds of each timed run that ended.
    pub timed: Vec<f64>,
    /// The outcomes of runs before the last one that lost devices: a device that stays lost
    /// takes no part in later runs, which do not tell it.
    pub lossy: Vec<GraphOutcome>,
    /// When the first timed run began.
    pub began: Instant,
}

/// A run, and the real seconds in which its policy was made and decided. A simulated
/// time does not contain them.
pub struct TaskRun {
    pub outcome: GraphOutcome,
    pub deciding_seconds: f64,
}

impl OpenTasks {
    /// Opens the tasks of a graph, each of which is a kernel, on a runtime. `memory` is the most
    /// bytes of each device's own memory; `None`: all.
    ///
    /// # Errors
    /// As [`PreparedGraph::new`].
    pub fn new(
        runtime: &dyn Runtime,
        graph: &Arc<TaskGraph>,
        seconds: &KernelSeconds,
        memory: Option<u64>,
    ) -> Result<Self, GraphRunError> {
        let components = Arc::new(Components::single_kernels(graph));
        let mut division = Division::new(runtime, graph, components, &seconds.of(graph))?;
        if let Some(memory) = memory {
            division.limit_memory(memory);
        }
        Ok(Self { division })
    }

    /// Runs all tasks once, with a trace of all commands if `trace`. Memory and kernels
    /// are made before the time begins.
    ///
    /// # Errors
    /// What the engine refuses or cannot recover from.
    pub fn run(
        &mut self,
        runtime: &mut dyn Runtime,
        choice: &PolicyChoice,
        trace: bool,
        control: &mut Control,
    ) -> Result<TaskRun, GraphRunError> {
        let Division { problem, prepared } = &mut self.division;
        let options = Options {
            trace,
            ..Options::of_tasks(prepared.graph(), runtime.devices())
        };
        let problem = problem.clone();
        let began = Instant::now();
        let of_policy = PolicyOptions {
            // Tasks share data, which are to be loaded ahead under any policy.
            window: Some(choice.window.unwrap_or(WINDOW)),
            seed: choice.seed,
            ..PolicyOptions::default()
        };
        let policy = choice.policy.policy(problem, &of_policy)?;
        let mut policy = Timed::new(policy, began.elapsed());
        prepared.prepare(runtime, &mut policy, &options)?;
        let outcome = prepared.run(runtime, &mut policy, &options, control)?;
        Ok(TaskRun {
            outcome,
            deciding_seconds: policy.seconds(),
        })
    }

    /// Runs all tasks several times, until one is interrupted.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn repeat(
        &mut self,
        runtime: &mut dyn Runtime,
        choice: &PolicyChoice,
        repeats: &Repetition,
        trace: bool,
        control: &mut Control,
    ) -> Result<TaskRuns, GraphRunError> {
        let apart = trace && repeats.traces_apart;
        // Whether it is timed, and whether it is traced. The first run with profiling queues
        // opens them.
        let runs = repeat_n((false, false), repeats.warms_up.into())
            .chain(repeat_n(
                (true, trace && !apart),
                repeats.timed.max(1) as usize,
            ))
            .chain(repeat_n((false, true), if apart { 2 } else { 0 }));
        let (mut timed, mut lossy) = (Vec::new(), Vec::new());
        let (mut began, mut last) = (None, None::<TaskRun>);
        for (is_timed, trace) in runs {
            if last.as_ref().is_some_and(|last| last.outcome.interrupted) {
                break;
            }
            if is_timed {
                began.get_or_insert_with(Instant::now);
            }
            let run = self.run(runtime, choice, trace, control)?;
            if is_timed && !run.outcome.interrupted {
                timed.push(run.outcome.seconds);
            }
            let before = last.replace(run).map(|before| before.outcome);
            lossy.extend(before.filter(|before| !before.losses.is_empty()));
        }
        let Some(last) = last else {
            unreachable!("at least one run is timed");
        };
        Ok(TaskRuns {
            last,
            timed,
            lossy,
            began: began.unwrap_or_else(Instant::now),
        })
    }

    /// The graph's memory, in which results are.
    pub fn prepared(&self) -> &PreparedGraph {
        &self.division.prepared
    }

    /// Gives memory and queues back.
    pub fn release(self, runtime: &mut dyn Runtime) {
        self.division.prepared.release(runtime);
    }
}

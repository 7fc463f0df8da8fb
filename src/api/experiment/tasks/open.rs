//! Tasks on the devices of a runtime, which run as often as wanted.

use std::sync::Arc;
use std::time::Instant;

use super::timed::Timed;
use super::{KernelSeconds, TaskExperiment};
use crate::engine::graph::{Control, GraphOutcome, GraphRunError, Options, PreparedGraph};
use crate::experiment::Division;
use crate::policy::{NamedPolicy, PolicyOptions, WINDOW};
use crate::runtime::Runtime;

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

/// A run, and the real seconds in which its policy was made and decided. A simulated
/// time does not contain them.
pub struct TaskRun {
    pub outcome: GraphOutcome,
    pub deciding_seconds: f64,
}

impl TaskExperiment {
    /// Opens the tasks on a runtime. `memory` is the most bytes of each device's own
    /// memory; `None`: all.
    ///
    /// # Errors
    /// As [`PreparedGraph::new`].
    pub fn open(
        &self,
        runtime: &dyn Runtime,
        seconds: &KernelSeconds,
        memory: Option<u64>,
    ) -> Result<OpenTasks, GraphRunError> {
        let times = seconds.of(&self.graph);
        let components = Arc::clone(&self.components);
        let mut division = Division::new(runtime, &self.graph, components, &times)?;
        if let Some(memory) = memory {
            division.limit_memory(memory);
        }
        Ok(OpenTasks { division })
    }
}

impl OpenTasks {
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

    /// The graph's memory, in which results are.
    pub fn prepared(&self) -> &PreparedGraph {
        &self.division.prepared
    }

    /// Gives memory and queues back.
    pub fn release(self, runtime: &mut dyn Runtime) {
        self.division.prepared.release(runtime);
    }
}

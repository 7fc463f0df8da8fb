//! Tasks that share data under policies for small memories: the experiments of Gonthier,
//! Marchal and Thibault (IPDPS 2022) on a [`TaskSet`](crate::workload::task_set::TaskSet).
//!
//! A [`TaskExperiment`] runs one set under one policy, with a component a task, and
//! returns [`TaskFigures`]; [`OpenTasks`] run as often as wanted. [`KernelSeconds`] are what
//! policies know of the tasks' times, measured on a [`sample`] of the set. `bound` is the
//! least time that a machine allows, and `timed` measures how long a policy decides.

mod bound;
mod open;
mod sample;
mod timed;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use crate::engine::graph::kernel_seconds::KernelSeconds;
pub use bound::least_seconds;
pub use open::{OpenTasks, PolicyChoice, TaskRun};
pub use sample::sample;

use crate::codelet::Name;
use crate::engine::graph::{Control, DeviceUse, GraphOutcome, GraphRunError};
use crate::graph::{Components, DatumId, Kernel, TaskGraph};
use crate::policy::NamedPolicy;
use crate::runtime::Runtime;

/// A set of tasks, ready to run under any policy.
pub struct TaskExperiment {
    graph: Arc<TaskGraph>,
    components: Arc<Components>,
}

/// How a set is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskOptions {
    /// The most bytes of each device's own memory; `None`: all.
    pub memory: Option<u64>,
    /// Tasks that a device has at once; `None`: [`WINDOW`](crate::policy::WINDOW).
    pub window: Option<usize>,
    /// Of the policy's random choices.
    pub seed: u64,
    /// Whether a run that does not count comes first: real devices are slower in a
    /// graph's first run.
    pub warm_up: bool,
}

/// The figures of a run, of all devices together.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskFigures {
    /// Simulated on a simulated machine.
    pub seconds: f64,
    /// Copied from host memory to devices, and back.
    pub loaded_bytes: u64,
    /// From other devices' memory, directly.
    pub peer_bytes: u64,
    pub written_back_bytes: u64,
    /// Data that left a device's memory before the end.
    pub evictions: u64,
    /// Real seconds in which the policy was made and decided. A simulated time does not
    /// contain them.
    pub deciding_seconds: f64,
    /// Ended early on request.
    pub interrupted: bool,
    /// The devices that were lost, and why.
    pub lost: Vec<String>,
}

impl TaskExperiment {
    /// The experiment with a graph of which each kernel is a task.
    pub fn new(graph: Arc<TaskGraph>) -> Self {
        Self {
            components: Arc::new(Components::single_kernels(&graph)),
            graph,
        }
    }

    /// The graph.
    pub fn graph(&self) -> &TaskGraph {
        &self.graph
    }

    /// How many tasks there are.
    pub fn tasks(&self) -> usize {
        self.components.len()
    }

    /// The name of the task with the most bytes of data, and these.
    pub fn largest_task(&self) -> Option<(&Name, u64)> {
        let bytes = |kernel: &Kernel| {
            let data = kernel.inputs().chain(kernel.outputs());
            let mut memory: Vec<DatumId> = data.map(|d| self.graph.first_version(d)).collect();
            memory.sort_unstable();
            memory.dedup();
            memory.iter().map(|d| self.graph.datum(*d).bytes).sum()
        };
        let kernels = self.graph.kernels().iter();
        let sizes = kernels.map(|kernel| (&kernel.name, bytes(kernel)));
        // The first one of several.
        sizes.rev().max_by_key(|(_, bytes)| *bytes)
    }

    /// Operations of all tasks.
    pub fn flops(&self) -> f64 {
        let costs = self.graph.kernels().iter().map(|kernel| kernel.cost.flops);
        costs.sum()
    }

    /// Runs all tasks once. Memory and kernels are made before the time begins, and
    /// given back after it.
    ///
    /// # Errors
    /// What the engine refuses or cannot recover from.
    pub fn run(
        &self,
        runtime: &mut dyn Runtime,
        policy: NamedPolicy,
        seconds: &KernelSeconds,
        options: &TaskOptions,
        control: &mut Control,
    ) -> Result<TaskFigures, GraphRunError> {
        let mut open = self.open(runtime, seconds, options.memory)?;
        let choice = PolicyChoice {
            policy,
            window: options.window,
            seed: options.seed,
        };
        let mut once = || open.run(runtime, &choice, false, control);
        let run = match options.warm_up {
            true => once().and_then(|_| once()),
            false => once(),
        };
        open.release(runtime);
        let run = run?;
        Ok(TaskFigures::of(&run.outcome, run.deciding_seconds))
    }
}

impl TaskFigures {
    fn of(outcome: &GraphOutcome, deciding_seconds: f64) -> Self {
        let sum = |figure: fn(&DeviceUse) -> u64| outcome.uses.iter().map(figure).sum();
        let lost = outcome.losses.iter();
        Self {
            seconds: outcome.seconds,
            loaded_bytes: sum(|used| used.bytes_h2d),
            peer_bytes: sum(|used| used.bytes_peer),
            written_back_bytes: sum(|used| used.bytes_d2h),
            evictions: sum(|used| used.evictions),
            deciding_seconds,
            interrupted: outcome.interrupted,
            lost: lost
                .map(|loss| format!("{} was lost: {}", outcome.devices[loss.device], loss.why))
                .collect(),
        }
    }
}

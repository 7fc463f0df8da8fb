//! Tasks that share data under policies for small memories: the experiments of Gonthier,
//! Marchal and Thibault (IPDPS 2022) on a [`TaskSet`](crate::workload::task_set::TaskSet).
//!
//! A [`TaskExperiment`] is one set with a component a task; its [`OpenTasks`] run as often as
//! wanted, under any policy. [`KernelSeconds`] are what
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
use crate::graph::{Components, DatumId, Kernel, TaskGraph};

/// A set of tasks, ready to run under any policy.
pub struct TaskExperiment {
    graph: Arc<TaskGraph>,
    components: Arc<Components>,
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
}

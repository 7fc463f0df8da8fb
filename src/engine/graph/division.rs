//! A division of a graph into components, ready on a runtime, with what policies
//! know of it.

use std::sync::Arc;

use super::problem::{KernelTimes, problem};
use super::{GraphRunError, PreparedGraph, abilities};
use crate::policy::Problem;
use crate::runtime::Runtime;
use pdawl_core::graph::{Components, TaskGraph};

/// A divided graph. It belongs to the runtime that it was made with; release
/// `prepared` there.
pub struct Division {
    pub problem: Problem,
    pub prepared: PreparedGraph,
}

impl Division {
    /// Divides a graph; `times` of its kernels as far as they are known. The first
    /// run allocates the memory.
    ///
    /// # Errors
    /// As [`PreparedGraph::new`].
    pub fn new(
        runtime: &dyn Runtime,
        graph: &Arc<TaskGraph>,
        components: Arc<Components>,
        times: &KernelTimes,
    ) -> Result<Self, GraphRunError> {
        Ok(Self {
            problem: described(runtime, graph, &components, times),
            prepared: PreparedGraph::new(runtime, Arc::clone(graph), components)?,
        })
    }

    /// What policies know with other `times` of the kernels.
    pub fn problem_with(&self, runtime: &dyn Runtime, times: &KernelTimes) -> Problem {
        let (graph, components) = (self.prepared.graph(), self.prepared.components());
        described(runtime, graph, components, times)
    }

    /// Uses at most so many bytes of each device's own memory, and lets policies know.
    pub fn limit_memory(&mut self, bytes: u64) {
        self.prepared.limit_memory(bytes);
        let devices = self.problem.devices.iter_mut();
        for own in devices.filter_map(|device| device.memory.as_mut()) {
            *own = bytes.min(*own);
        }
    }
}

fn described(
    runtime: &dyn Runtime,
    graph: &TaskGraph,
    components: &Components,
    times: &KernelTimes,
) -> Problem {
    let able = abilities(graph, components, runtime.devices());
    problem(graph, components, runtime, &able, times)
}

//! A division of a graph into components, ready on a runtime, with what policies
//! know of it.

use std::sync::Arc;

use crate::engine::graph::problem::{KernelTimes, problem};
use crate::engine::graph::{GraphRunError, PreparedGraph, abilities};
use crate::graph::{Components, TaskGraph};
use crate::policy::Problem;
use crate::runtime::Runtime;

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
        let devices = runtime.devices();
        let able = abilities(graph, &components, devices);
        Ok(Self {
            problem: problem(graph, &components, runtime, &able, times),
            prepared: PreparedGraph::new(runtime, Arc::clone(graph), components)?,
        })
    }
}

//! A graph with its components, ready on a runtime, and what policies know of
//! it.

use std::sync::Arc;

use super::ExperimentError;
use crate::engine::graph::numbers::{Times, problem};
use crate::engine::graph::{Control, GraphOutcome, Options, Plan, abilities};
use crate::graph::Components;
use crate::policy::{Policy, Problem};
use crate::runtime::Runtime;
use crate::workload::transformer::{Layers, Part, Transformer};

pub(super) struct Arena {
    pub(super) layers: Layers,
    pub(super) problem: Problem,
    pub(super) plan: Plan,
}

impl Arena {
    /// Components of heads, or of single kernels; `times` of the graph's kernels
    /// as far as they are known.
    pub(super) fn new(
        runtime: &dyn Runtime,
        transformer: &Transformer,
        single_kernels: bool,
        times: &Times,
    ) -> Result<Self, ExperimentError> {
        let layers = transformer.layers()?;
        let components = Arc::new(match single_kernels {
            true => Components::single_kernels(&layers.graph),
            false => layers.components().map_err(super::GraphRunError::from)?,
        });
        let devices = runtime.devices();
        let able = abilities(&layers.graph, &components, devices);
        Ok(Self {
            problem: problem(&layers.graph, &components, devices, &able, times),
            plan: Plan::new(runtime, Arc::clone(&layers.graph), components)?,
            layers,
        })
    }

    /// Runs once; memory, queues and kernels are made before, apart from its time.
    pub(super) fn run(
        &mut self,
        runtime: &mut dyn Runtime,
        policy: &mut dyn Policy,
        options: &Options,
        control: &mut Control,
    ) -> Result<GraphOutcome, ExperimentError> {
        self.plan.prepare(runtime, policy, options)?;
        Ok(self.plan.run(runtime, policy, options, control)?)
    }

    /// What the last run made.
    pub(super) fn results(
        &self,
        runtime: &mut dyn Runtime,
    ) -> Result<Vec<(Part, Vec<f32>)>, ExperimentError> {
        let bytes = |datum| self.plan.bytes(runtime, datum).map(<[u8]>::to_vec);
        Ok(self.layers.results(bytes)?)
    }

    pub(super) fn release(self, runtime: &mut dyn Runtime) {
        self.plan.release(runtime);
    }
}

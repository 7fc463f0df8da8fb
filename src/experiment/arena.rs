//! A graph with its components, ready on a runtime, and what policies know of
//! it.

use std::sync::Arc;

use super::ExperimentError;
use crate::engine::graph::numbers::{Times, problem};
use crate::engine::graph::{Control, GraphOutcome, Options, Plan, abilities};
use crate::graph::Components;
use crate::machine::DeviceKind;
use crate::policy::{Clustering, Policy, Problem};
use crate::runtime::Runtime;
use crate::workload::transformer::{Layers, Transformer, Verification};

pub(super) struct Arena {
    pub(super) transformer: Transformer,
    pub(super) layers: Layers,
    pub(super) problem: Problem,
    components: Arc<Components>,
    plan: Plan,
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
            transformer: transformer.clone(),
            problem: problem(&layers.graph, &components, devices, &able, times),
            plan: Plan::new(runtime, Arc::clone(&layers.graph), Arc::clone(&components))?,
            layers,
            components,
        })
    }

    /// The map with so many heads of each layer on CPUs. What joins a layer's
    /// heads goes to where most of them are: to a GPU, unless all are on CPUs.
    pub(super) fn map(&self, on_cpu: usize) -> Result<Vec<usize>, ExperimentError> {
        let mut map = Clustering::map(&self.problem, on_cpu)?;
        let heads = self.transformer.heads as usize;
        let gpu =
            (0..self.problem.spots.len()).find(|d| self.problem.spots[*d].kind != DeviceKind::Cpu);
        let Some(gpu) = gpu.filter(|_| on_cpu < heads) else {
            return Ok(map);
        };
        for (component, device) in map.iter_mut().enumerate() {
            let first = self.components.list()[component].kernels[0];
            let joins = self.layers.parts[first.0].heads.is_none();
            if joins && self.problem.able(component, gpu) {
                *device = gpu;
            }
        }
        Ok(map)
    }

    pub(super) fn run(
        &mut self,
        runtime: &mut dyn Runtime,
        policy: &mut dyn Policy,
        options: &Options,
        control: &mut Control,
    ) -> Result<GraphOutcome, ExperimentError> {
        Ok(self.plan.run(runtime, policy, options, control)?)
    }

    /// Makes memory, queues and kernels beforehand.
    pub(super) fn prepare(
        &mut self,
        runtime: &mut dyn Runtime,
        policy: &dyn Policy,
        options: &Options,
    ) -> Result<(), ExperimentError> {
        Ok(self.plan.prepare(runtime, policy, options)?)
    }

    /// The results of the last run against the reference.
    pub(super) fn verify(
        &self,
        runtime: &mut dyn Runtime,
    ) -> Result<Verification, ExperimentError> {
        let mut results = Vec::new();
        for (part, datum) in &self.layers.outputs {
            let bytes = self.plan.bytes(runtime, *datum)?;
            results.push((*part, bytemuck::pod_collect_to_vec::<u8, f32>(bytes)));
        }
        let results: Vec<_> = results.iter().map(|(part, z)| (*part, &z[..])).collect();
        Ok(self.transformer.verify(&results))
    }

    pub(super) fn release(self, runtime: &mut dyn Runtime) {
        self.plan.release(runtime);
    }
}

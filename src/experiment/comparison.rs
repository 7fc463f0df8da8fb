//! One transformer under any policy.

use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{Division, ExperimentError};
use crate::engine::graph::search::{self, SearchResult};
use crate::engine::graph::{Control, GraphOutcome, GraphRunError, Options, times};
use crate::graph::Components;
use crate::policy::{Adaptive, Configuration, Eager, Heft, Policy, Search, Space};
use crate::runtime::Runtime;
use crate::workload::transformer::{Form, Layers, Reference, Transformer, Verification};

/// Runs of the graph in which the times of kernels are measured.
const TIMED_RUNS: usize = 3;

/// A policy that is compared, with its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CandidatePolicy {
    /// Heads on given kinds of device.
    Clustering(Configuration),
    /// Each kernel to a device that is idle, one queue a device.
    Eager,
    /// Each kernel to the device that finishes it first, one queue a device.
    Heft,
    /// Heads by learned shares, over the queues of this configuration.
    Adaptive(Configuration),
}

/// A transformer, ready to run under any policy on one runtime, where it must be
/// released with [`Comparison::release`].
pub struct Comparison {
    transformer: Transformer,
    layers: Layers,
    /// Whether given data stay on devices from run to run.
    keep: bool,
    by_head: Division,
    /// Made when the first policy needs it.
    by_kernel: Option<Division>,
    /// Kept with what it has learned, for the same configuration.
    adaptive: Option<(Configuration, Adaptive)>,
    /// Whether the last run was of single kernels.
    ran_kernels: bool,
    /// The reference result, when it was first needed.
    reference: OnceCell<Reference>,
}

impl Comparison {
    /// Builds the graph. The first run allocates the memory.
    ///
    /// # Errors
    /// Sizes that are not allowed, and no device.
    pub fn new(
        runtime: &dyn Runtime,
        transformer: &Transformer,
        keep: bool,
    ) -> Result<Self, ExperimentError> {
        let layers = transformer.layers()?;
        let heads = Arc::new(layers.components().map_err(GraphRunError::from)?);
        Ok(Self {
            by_head: Division::new(runtime, &layers.graph, heads, &Vec::new())?,
            layers,
            transformer: transformer.clone(),
            keep,
            by_kernel: None,
            adaptive: None,
            ran_kernels: false,
            reference: OnceCell::new(),
        })
    }

    /// Operations of a run.
    pub fn flops(&self) -> f64 {
        self.layers.flops()
    }

    /// Components of a layer: heads, or groups of them.
    pub fn heads(&self) -> usize {
        match &self.transformer.form {
            Form::Heads => self.transformer.heads as usize,
            Form::Batches(groups) => groups.len(),
        }
    }

    /// Runs once; memory, queues and kernels are made before its time begins. With
    /// a `trace` the devices stamp every command, which may cost time.
    ///
    /// # Errors
    /// What the engine refuses or cannot recover from.
    pub fn run(
        &mut self,
        runtime: &mut dyn Runtime,
        candidate: CandidatePolicy,
        trace: bool,
        control: &mut Control,
    ) -> Result<GraphOutcome, ExperimentError> {
        self.ran_kernels = matches!(candidate, CandidatePolicy::Eager | CandidatePolicy::Heft);
        if self.ran_kernels && self.by_kernel.is_none() {
            let graph = &self.layers.graph;
            let times = times::measure(runtime, graph, None, TIMED_RUNS, control.stop)?;
            let kernels = Arc::new(Components::single_kernels(graph));
            self.by_kernel = Some(Division::new(runtime, graph, kernels, &times)?);
        }
        let division = match &mut self.by_kernel {
            Some(by_kernel) if self.ran_kernels => by_kernel,
            _ => &mut self.by_head,
        };
        let base = Options {
            trace,
            keep: self.keep,
            ..Options::queues(Vec::new())
        };
        let problem = &division.problem;
        let options = match candidate {
            CandidatePolicy::Clustering(configuration)
            | CandidatePolicy::Adaptive(configuration) => {
                search::options(&configuration, problem, &base)
            }
            CandidatePolicy::Eager | CandidatePolicy::Heft => base,
        };
        let mut clustering;
        let (mut eager, mut heft);
        let policy: &mut dyn Policy = match candidate {
            CandidatePolicy::Clustering(configuration) => {
                clustering = search::policy(&configuration, problem)?;
                &mut clustering
            }
            CandidatePolicy::Adaptive(configuration) => {
                let known = self.adaptive.take().filter(|(of, _)| *of == configuration);
                let fresh = || (configuration, Adaptive::new(problem.clone()));
                &mut self.adaptive.insert(known.unwrap_or_else(fresh)).1
            }
            CandidatePolicy::Eager => {
                eager = Eager::new(problem.clone());
                &mut eager
            }
            CandidatePolicy::Heft => {
                heft = Heft::new(problem.clone());
                &mut heft
            }
        };
        division.prepared.prepare(runtime, policy, &options)?;
        Ok((division.prepared).run(runtime, policy, &options, control)?)
    }

    /// Compares the last run's result with the sequential reference. Only for a
    /// transformer whose results are read back. `None` if `stop` was set meanwhile.
    ///
    /// # Errors
    /// When there is no result, as in a simulation without data.
    pub fn verify(
        &self,
        runtime: &mut dyn Runtime,
        stop: &AtomicBool,
    ) -> Result<Option<Verification>, ExperimentError> {
        let division = match &self.by_kernel {
            Some(by_kernel) if self.ran_kernels => by_kernel,
            _ => &self.by_head,
        };
        let bytes = |datum| division.prepared.bytes(runtime, datum).map(<[u8]>::to_vec);
        let results = self.layers.results(bytes)?;
        if self.reference.get().is_none() {
            let parts: Vec<_> = results.iter().map(|(part, _)| *part).collect();
            if let Some(reference) = self.transformer.reference(&parts, stop) {
                // It was empty, so this succeeds.
                let _ = self.reference.set(reference);
            }
        }
        let reference = self.reference.get();
        Ok(reference.map(|reference| reference.compare(&results)))
    }

    /// Measures every configuration of a space, and the better ones again in later
    /// rounds. `control.progress` is told the runs so far.
    ///
    /// # Errors
    /// As [`Comparison::run`].
    pub fn search(
        &mut self,
        runtime: &mut dyn Runtime,
        space: &Space,
        rounds: usize,
        control: &mut Control,
    ) -> Result<SearchResult, ExperimentError> {
        let search = Search::new(space.configurations(self.heads()), rounds);
        let base = Options {
            keep: self.keep,
            ..Options::queues(Vec::new())
        };
        let Division { prepared, problem } = &mut self.by_head;
        Ok(search::search(
            runtime, prepared, problem, search, &base, control,
        )?)
    }

    /// Gives memory and queues back.
    pub fn release(self, runtime: &mut dyn Runtime) {
        for division in [Some(self.by_head), self.by_kernel].into_iter().flatten() {
            division.prepared.release(runtime);
        }
    }
}

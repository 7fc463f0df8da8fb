//! One transformer under any policy, as tests compare them. Whatever fails panics.

use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pdawl_api::engine::graph::problem::{self, KernelTimes};
use pdawl_api::engine::graph::search::{self, SearchResult};
use pdawl_api::engine::graph::{Control, Division, GraphOutcome, Options, abilities, times};
use pdawl_api::graph::Components;
use pdawl_api::policy::{Configuration, NamedPolicy, Policy, PolicyOptions, Search, Space};
use pdawl_api::runtime::Runtime;
use pdawl_api::workload::transformer::{Form, Layers, Reference, Transformer, Verification};

/// Runs of the graph in which the times of kernels are measured.
const TIMED_RUNS: usize = 3;

/// A policy that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandidatePolicy {
    pub policy: NamedPolicy,
    /// The queues, and the map of a policy that takes one. `None`: one queue a device, as for
    /// policies that place kernels.
    pub configuration: Option<Configuration>,
}

impl CandidatePolicy {
    pub const fn new(policy: NamedPolicy, configuration: Option<Configuration>) -> Self {
        Self {
            policy,
            configuration,
        }
    }
}

/// A transformer, ready to run under any policy on one runtime, where it must be
/// released with [`Comparison::release`].
pub struct Comparison {
    transformer: Transformer,
    layers: Layers,
    /// Whether given data stay on devices from run to run.
    keep: bool,
    by_head: Division,
    /// The times of kernels, measured when a policy first needs them.
    times: Option<KernelTimes>,
    /// Made when a policy first needs it, with the times.
    by_kernel: Option<Division>,
    /// A policy with what it has learned, for the same candidate.
    learned: Option<(CandidatePolicy, Box<dyn Policy>)>,
    /// Whether the last run was of single kernels.
    ran_kernels: bool,
    /// The reference result, when it was first needed.
    reference: OnceCell<Reference>,
}

impl Comparison {
    /// Builds the graph. The first run allocates the memory.
    pub fn new(runtime: &dyn Runtime, transformer: &Transformer, keep: bool) -> Self {
        let layers = transformer.layers().unwrap();
        let heads = Arc::new(layers.components().unwrap());
        Self {
            by_head: Division::new(runtime, &layers.graph, heads, &Vec::new(), None).unwrap(),
            layers,
            transformer: transformer.clone(),
            keep,
            times: None,
            by_kernel: None,
            learned: None,
            ran_kernels: false,
            reference: OnceCell::new(),
        }
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
    pub fn run(
        &mut self,
        runtime: &mut dyn Runtime,
        candidate: CandidatePolicy,
        trace: bool,
        control: &mut Control,
    ) -> GraphOutcome {
        let CandidatePolicy {
            policy: named,
            configuration,
        } = candidate;
        self.ran_kernels = named.places_kernels();
        let graph = &self.layers.graph;
        if self.times.is_none() && (self.ran_kernels || named.needs_times()) {
            let times = times::measure(runtime, graph, None, TIMED_RUNS, &|_| true, control.stop);
            self.times = Some(times.unwrap().0);
        }
        let unknown = KernelTimes::new();
        let times = self.times.as_ref().unwrap_or(&unknown);
        if self.ran_kernels && self.by_kernel.is_none() {
            let kernels = Arc::new(Components::single_kernels(graph));
            self.by_kernel = Some(Division::new(runtime, graph, kernels, times, None).unwrap());
        }
        let division = match &mut self.by_kernel {
            Some(by_kernel) if self.ran_kernels => by_kernel,
            _ => &mut self.by_head,
        };
        let problem = || match named.needs_times() {
            true => {
                let prepared = &division.prepared;
                let (graph, components) = (prepared.graph(), prepared.components());
                let able = abilities(graph, components, runtime.devices());
                problem::problem(graph, components, runtime, &able, times)
            }
            false => division.problem.clone(),
        };
        let made = || {
            let options = PolicyOptions {
                on_cpu: configuration.map_or(0, |configuration| configuration.h_cpu),
                seed: self.transformer.seed,
                ..PolicyOptions::default()
            };
            named.policy(problem(), &options).unwrap()
        };
        let mut fresh;
        let policy = match named == NamedPolicy::ADAPTIVE {
            true => {
                let known = self.learned.take().filter(|(of, _)| *of == candidate);
                let known = match known {
                    Some(known) => known,
                    None => (candidate, made()),
                };
                self.learned.insert(known).1.as_mut()
            }
            false => {
                fresh = made();
                fresh.as_mut()
            }
        };
        let base = Options {
            trace,
            keep: self.keep,
            ..Options::queues(Vec::new())
        };
        let options = match configuration {
            Some(configuration) => search::options(&configuration, &division.problem, &base),
            None => base,
        };
        let prepared = &mut division.prepared;
        prepared.prepare(runtime, policy, &options).unwrap();
        prepared.run(runtime, policy, &options, control).unwrap()
    }

    /// Compares the last run's result with the sequential reference. Only for a
    /// transformer whose results are read back.
    pub fn verify(&self, runtime: &mut dyn Runtime) -> Verification {
        let division = match &self.by_kernel {
            Some(by_kernel) if self.ran_kernels => by_kernel,
            _ => &self.by_head,
        };
        let bytes = |datum| division.prepared.bytes(runtime, datum).map(<[u8]>::to_vec);
        let results = self.layers.results(bytes).unwrap();
        let reference = self.reference.get_or_init(|| {
            let parts: Vec<_> = results.iter().map(|(part, _)| *part).collect();
            let reference = self.transformer.reference(&parts, &AtomicBool::new(false));
            reference.expect("nothing stops it")
        });
        reference.compare(&results)
    }

    /// Measures every configuration of a space, and the better ones again in later
    /// rounds. `control.progress` receives the runs so far.
    pub fn search(
        &mut self,
        runtime: &mut dyn Runtime,
        space: &Space,
        rounds: usize,
        control: &mut Control,
    ) -> SearchResult {
        let search = Search::new(space.configurations(self.heads()), rounds);
        let base = Options {
            keep: self.keep,
            ..Options::queues(Vec::new())
        };
        let Division { prepared, problem } = &mut self.by_head;
        search::search(runtime, prepared, problem, search, &base, control).unwrap()
    }

    /// Gives memory and queues back.
    pub fn release(self, runtime: &mut dyn Runtime) {
        for division in [Some(self.by_head), self.by_kernel].into_iter().flatten() {
            division.prepared.release(runtime);
        }
    }
}

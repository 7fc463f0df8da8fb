//! One transformer under any policy.

use std::cell::OnceCell;
use std::sync::atomic::AtomicBool;

use super::ExperimentError;
use super::arena::Arena;
use crate::engine::graph::numbers::Times;
use crate::engine::graph::search::{self, Found};
use crate::engine::graph::{Control, GraphOutcome, Options, times};
use crate::policy::{Adaptive, Configuration, Eager, Heft, Search, Space};
use crate::runtime::Runtime;
use crate::workload::transformer::{Form, Reference, Transformer, Verification};

/// Runs of the graph from which a kernel's time is taken.
const TIMED_RUNS: usize = 3;

/// Who decides, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// Heads on given kinds of device.
    Clustering(Configuration),
    /// Kernel by kernel to whoever is idle, one queue a device.
    Eager,
    /// Kernel by kernel to whoever ends it first, one queue a device.
    Heft,
    /// Heads by learned shares, over the queues of this configuration.
    Adaptive(Configuration),
}

impl Contender {
    /// The policy's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Clustering(_) => "clustering",
            Self::Eager => "eager",
            Self::Heft => "heft",
            Self::Adaptive(_) => "adaptive",
        }
    }
}

/// A transformer, ready to run under any policy on one runtime, to which it must
/// be given back by [`Bout::release`].
pub struct Bout {
    transformer: Transformer,
    /// Whether what came from the host stays on devices from run to run.
    keep: bool,
    by_head: Arena,
    /// Made when the first policy wants it.
    by_kernel: Option<Arena>,
    /// Kernels' times, once they were measured.
    times: Option<Times>,
    /// What it learned stays, for the same configuration.
    adaptive: Option<(Configuration, Adaptive)>,
    /// Whether the last run was of single kernels.
    of_kernels: bool,
    /// What is right, once it was asked for.
    reference: OnceCell<Reference>,
}

impl Bout {
    /// Makes the graph. Memory is made by the first run.
    ///
    /// # Errors
    /// Sizes that cannot be, and no device.
    pub fn new(
        runtime: &dyn Runtime,
        transformer: &Transformer,
        keep: bool,
    ) -> Result<Self, ExperimentError> {
        Ok(Self {
            by_head: Arena::new(runtime, transformer, false, &Vec::new())?,
            transformer: transformer.clone(),
            keep,
            by_kernel: None,
            times: None,
            adaptive: None,
            of_kernels: false,
            reference: OnceCell::new(),
        })
    }

    /// Operations of a run.
    pub fn flops(&self) -> f64 {
        self.by_head.layers.flops()
    }

    /// Components that a layer's heads make: heads, or groups of them.
    pub fn heads(&self) -> usize {
        match &self.transformer.form {
            Form::Heads => self.transformer.heads as usize,
            Form::Batches(groups) => groups.len(),
        }
    }

    /// Runs once. With a `trace` the devices stamp every command, which may cost
    /// time.
    ///
    /// # Errors
    /// What the engine refuses or cannot recover from.
    pub fn run(
        &mut self,
        runtime: &mut dyn Runtime,
        contender: Contender,
        trace: bool,
        control: &mut Control,
    ) -> Result<GraphOutcome, ExperimentError> {
        let options = self.options(contender, trace);
        self.of_kernels = matches!(contender, Contender::Eager | Contender::Heft);
        match contender {
            Contender::Clustering(configuration) => {
                let mut policy = search::policy(&configuration, &self.by_head.problem)?;
                self.by_head.run(runtime, &mut policy, &options, control)
            }
            Contender::Adaptive(configuration) => {
                let known = self.adaptive.take().filter(|(of, _)| *of == configuration);
                let (_, policy) = self.adaptive.insert(known.unwrap_or_else(|| {
                    (configuration, Adaptive::new(self.by_head.problem.clone()))
                }));
                self.by_head.run(runtime, policy, &options, control)
            }
            Contender::Eager => {
                let arena = self.by_kernel(runtime, control.stop)?;
                let mut policy = Eager::new(arena.problem.clone());
                arena.run(runtime, &mut policy, &options, control)
            }
            Contender::Heft => {
                let arena = self.by_kernel(runtime, control.stop)?;
                let mut policy = Heft::new(arena.problem.clone());
                arena.run(runtime, &mut policy, &options, control)
            }
        }
    }

    /// Compares the last run's result with the sequential reference. Only for a
    /// transformer that is read back. `None` if `stop` was set meanwhile.
    ///
    /// # Errors
    /// When there is no result, as in a simulation without data.
    pub fn verify(
        &self,
        runtime: &mut dyn Runtime,
        stop: &AtomicBool,
    ) -> Result<Option<Verification>, ExperimentError> {
        let arena = match (self.of_kernels, &self.by_kernel) {
            (true, Some(arena)) => arena,
            _ => &self.by_head,
        };
        let results = arena.results(runtime)?;
        if self.reference.get().is_none() {
            let parts: Vec<_> = results.iter().map(|(part, _)| *part).collect();
            if let Some(reference) = self.transformer.reference(&parts, stop) {
                // Nobody else has set it meanwhile.
                let _ = self.reference.set(reference);
            }
        }
        let reference = self.reference.get();
        Ok(reference.map(|reference| reference.compare(&results)))
    }

    /// Measures every configuration of a space, and the better ones again in
    /// later rounds; `control.progress` is told the runs so far.
    ///
    /// # Errors
    /// As [`Bout::run`].
    pub fn search(
        &mut self,
        runtime: &mut dyn Runtime,
        space: &Space,
        rounds: usize,
        control: &mut Control,
    ) -> Result<Found, ExperimentError> {
        let search = Search::new(space.configurations(self.heads()), rounds);
        let base = Options {
            keep: self.keep,
            ..Options::queues(Vec::new())
        };
        let Arena { plan, problem, .. } = &mut self.by_head;
        Ok(search::search(
            runtime, plan, problem, search, &base, control,
        )?)
    }

    /// Gives memory and queues back.
    pub fn release(self, runtime: &mut dyn Runtime) {
        self.by_head.release(runtime);
        if let Some(arena) = self.by_kernel {
            arena.release(runtime);
        }
    }

    /// Queues as the contender wants them.
    fn options(&self, contender: Contender, trace: bool) -> Options {
        let base = Options {
            trace,
            keep: self.keep,
            ..Options::queues(Vec::new())
        };
        match contender {
            Contender::Clustering(of) | Contender::Adaptive(of) => {
                search::options(&of, &self.by_head.problem, &base)
            }
            Contender::Eager | Contender::Heft => base,
        }
    }

    /// The graph of single kernels, with their measured times.
    fn by_kernel(
        &mut self,
        runtime: &mut dyn Runtime,
        stop: &AtomicBool,
    ) -> Result<&mut Arena, ExperimentError> {
        let arena = match self.by_kernel.take() {
            Some(arena) => arena,
            None => {
                if self.times.is_none() {
                    let graph = &self.by_head.layers.graph;
                    self.times = Some(times::measure(runtime, graph, TIMED_RUNS, stop)?);
                }
                let none = Vec::new();
                let times = self.times.as_ref().unwrap_or(&none);
                Arena::new(runtime, &self.transformer, true, times)?
            }
        };
        Ok(self.by_kernel.insert(arena))
    }
}

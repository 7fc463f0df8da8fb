//! One size of a transformer: the best clustering is searched, then the candidate
//! policies take turns.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{CandidatePolicy, Comparison, ExperimentError};
use crate::engine::graph::{Control, GraphOutcome};
use crate::policy::{Configuration, NamedPolicy, Space};
use crate::runtime::Runtime;
use crate::workload::transformer::{Form, Transformer, Verification};

/// Runs in which a policy that learns does so before one counts.
const LEARNING_RUNS: usize = 3;

/// Most queues that are searched for a batch, which is a chain of five kernels.
const BATCH_QUEUES: usize = 3;

/// How a point is measured.
#[derive(Clone, Debug)]
pub struct PointOptions {
    /// The policies that are compared with clustering.
    pub policies: Vec<NamedPolicy>,
    pub repeats: u32,
    /// Most queues of a GPU that are searched, and most heads on CPUs.
    pub most_queues: usize,
    pub most_on_cpu: usize,
    /// Rounds of the search.
    pub rounds: usize,
    /// Whether data stay on the devices.
    pub resident: bool,
    pub verify: bool,
    /// Seeds the order of turns.
    pub seed: u64,
}

/// A candidate and its runs.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// `coarse`, `clustering` and `batch` for clustering, otherwise that of its policy.
    pub name: String,
    pub policy: CandidatePolicy,
    /// Whether all heads of a layer are one batch.
    batch: bool,
    /// The runs that count.
    pub runs: Vec<GraphOutcome>,
    /// Of one more run; `None` if not asked.
    pub verified: Option<Verification>,
}

impl Candidate {
    fn new(name: impl Into<String>, policy: CandidatePolicy, batch: bool) -> Self {
        Self {
            name: name.into(),
            policy,
            batch,
            runs: Vec::new(),
            verified: None,
        }
    }
}

/// A measured size.
#[derive(Clone, Debug)]
pub struct Point {
    pub heads: u32,
    pub beta: u32,
    /// Operations of a run.
    pub flops: f64,
    /// Configurations that the search for the best clustering measured.
    pub searched: usize,
    pub candidates: Vec<Candidate>,
}

impl Point {
    /// Measures a point. `None` if `stop` was set before any candidate ran;
    /// otherwise it has the runs until then. `progress` receives each phase.
    ///
    /// # Errors
    /// As [`Comparison::run`].
    pub fn measure(
        runtime: &mut dyn Runtime,
        transformer: &Transformer,
        options: &PointOptions,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Option<Self>, ExperimentError> {
        let batch = Transformer {
            form: Form::Batches(vec![transformer.heads]),
            ..transformer.clone()
        };
        let mut turns = Turns {
            heads: Comparison::new(runtime, transformer, options.resident)?,
            batch: Comparison::new(runtime, &batch, options.resident)?,
            runtime,
            options,
            stop,
            progress,
        };
        let measured = turns.measure();
        let flops = turns.heads.flops();
        turns.heads.release(turns.runtime);
        turns.batch.release(turns.runtime);
        let point = measured?.map(|(searched, candidates)| Self {
            heads: transformer.heads,
            beta: transformer.beta,
            flops,
            searched,
            candidates,
        });
        Ok(point)
    }
}

/// The turns of the candidates on one transformer, by heads and as a batch.
struct Turns<'a> {
    heads: Comparison,
    batch: Comparison,
    runtime: &'a mut dyn Runtime,
    options: &'a PointOptions,
    stop: &'a AtomicBool,
    progress: &'a mut dyn FnMut(&str),
}

impl Turns<'_> {
    /// The number of configurations that the search measured, and the candidates.
    fn measure(&mut self) -> Result<Option<(usize, Vec<Candidate>)>, ExperimentError> {
        let options = self.options;
        let heads = self.heads.heads();
        let space = self.space(heads, options.most_queues, options.most_on_cpu);
        let on_cpu = space.h_cpu[0];
        let Some((best, searched)) = self.search(false, &space)? else {
            return Ok(None);
        };
        let queues = options.most_queues.min(BATCH_QUEUES);
        let Some((batched, _)) = self.search(true, &self.space(1, queues, 0))? else {
            return Ok(None);
        };
        let coarse = Configuration {
            q_gpu: 1,
            q_cpu: 1,
            h_cpu: on_cpu,
            width: 1,
        };
        let clustering =
            |configuration| CandidatePolicy::new(NamedPolicy::CLUSTERING, Some(configuration));
        let other = |policy: &NamedPolicy| {
            let configuration = (!policy.places_kernels()).then_some(best);
            let candidate = CandidatePolicy::new(*policy, configuration);
            Candidate::new(policy.to_string(), candidate, false)
        };
        let mut candidates = vec![
            Candidate::new("coarse", clustering(coarse), false),
            Candidate::new("clustering", clustering(best), false),
        ];
        candidates.extend(options.policies.iter().map(other));
        candidates.push(Candidate::new("batch", clustering(batched), true));
        // Times of kernels, memory, compiled kernels and shares exist before a run
        // counts.
        for candidate in &candidates {
            let runs = match candidate.policy.policy.learns() {
                true => LEARNING_RUNS,
                false => 1,
            };
            for _ in 0..runs {
                self.run(candidate)?;
            }
            (self.progress)(&candidate.name);
        }
        // A policy finds caches and the driver as the one before has left them. So a
        // turn is two runs, of which the second counts, in a random order.
        let mut random = fastrand::Rng::with_seed(options.seed);
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        for _ in 0..options.repeats {
            random.shuffle(&mut order);
            for index in &order {
                self.run(&candidates[*index])?;
                let outcome = self.run(&candidates[*index])?;
                if outcome.interrupted {
                    return Ok(Some((searched, candidates)));
                }
                candidates[*index].runs.push(outcome);
            }
            (self.progress)("turn");
        }
        if options.verify {
            for candidate in &mut candidates {
                self.run(candidate)?;
                let comparison = match candidate.batch {
                    true => &self.batch,
                    false => &self.heads,
                };
                candidate.verified = comparison.verify(self.runtime, self.stop)?;
                (self.progress)("verify");
            }
        }
        Ok(Some((searched, candidates)))
    }

    fn run(&mut self, candidate: &Candidate) -> Result<GraphOutcome, ExperimentError> {
        let comparison = match candidate.batch {
            true => &mut self.batch,
            false => &mut self.heads,
        };
        let mut control = Control {
            stop: self.stop,
            progress: &mut |_, _| {},
        };
        comparison.run(self.runtime, candidate.policy, false, &mut control)
    }

    /// The best configuration, and how many were measured; `None` if it was
    /// interrupted.
    fn search(
        &mut self,
        batch: bool,
        space: &Space,
    ) -> Result<Option<(Configuration, usize)>, ExperimentError> {
        let mut control = Control {
            stop: self.stop,
            progress: &mut |_, _| (self.progress)("search"),
        };
        let comparison = match batch {
            true => &mut self.batch,
            false => &mut self.heads,
        };
        let found = comparison.search(self.runtime, space, self.options.rounds, &mut control)?;
        let best = found.best.filter(|_| !self.stop.load(Ordering::Relaxed));
        Ok(best.map(|(best, _)| (best, found.all.len())))
    }

    /// Up to `queues` queues of a GPU, and two of a CPU, whose pool computes one
    /// kernel after the other with all its cores; up to `on_cpu` heads on CPUs.
    fn space(&self, heads: usize, queues: usize, on_cpu: usize) -> Space {
        let kinds = self.runtime.devices().iter().map(|device| device.kind);
        let q_gpu = (1..=queues.max(1)).collect();
        Space::on(kinds, (q_gpu, vec![1, 2]), heads, on_cpu)
    }
}

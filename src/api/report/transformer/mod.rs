//! The report of the PySchedCL paper's experiments on its transformer, as JSON of
//! schema `pdawl-bench-transformer/1` and as text: candidate policies point by point,
//! their ratios, and the ratios of the paper.

mod paper;
#[cfg(feature = "text")]
mod text;

use pdawl_profiler::median;
use schemars::JsonSchema;
use serde::Serialize;

pub use paper::{Claim, claims};

use super::run::Machine;
use crate::engine::graph::GraphOutcome;
use crate::experiment::{Candidate, CandidatePolicy, Point};

/// Candidate policies on transformers of several sizes, in turns. Times are virtual if
/// `machine.simulated`. `coarse` is clustering on one GPU queue, `clustering` its best
/// configuration, `batch` all heads in one batch. The others are the policies of `--policies`:
/// on one queue a device if they place single kernels, otherwise on the queues of the best
/// clustering; `adaptive` after three runs that do not count.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Experiments {
    pub machine: Machine,
    /// Of each transformer.
    pub layers: u32,
    /// Of all matrices: `f32`, `f16`, `bf16` or `tf32`.
    pub precision: &'static str,
    pub seed: u64,
    /// Runs of each candidate that count, in turns; each follows one that does not.
    pub repeats: u32,
    /// Whether inputs and weights stayed on the devices from run to run, and
    /// results were left there.
    pub resident: bool,
    pub points: Vec<PointReport>,
    /// What the paper says of these ratios.
    pub paper: Vec<Claim>,
    pub interrupted: bool,
    pub notes: Vec<String>,
}

/// One size of the transformer.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct PointReport {
    /// Heads of a layer; rows and columns of every matrix.
    pub heads: u32,
    pub beta: u32,
    /// Operations of all kernels.
    pub flops: f64,
    /// Configurations that the search for the best clustering measured.
    pub searched: usize,
    #[serde(rename = "contenders")]
    pub candidates: Vec<CandidateResult>,
    pub ratios: Ratios,
}

/// A candidate policy and its runs.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct CandidateResult {
    /// `coarse`, `clustering`, `batch`, or the name of another policy.
    pub name: String,
    /// Queues of each GPU and of each CPU, and heads on CPUs (null: the policy decides).
    pub q_gpu: usize,
    pub q_cpu: usize,
    pub h_cpu: Option<usize>,
    /// Queues that a head is spread over.
    pub width: usize,
    /// By run.
    pub seconds: Vec<f64>,
    /// By the median of the runs.
    pub flops_per_second: Option<f64>,
    /// The median seconds of the host a kernel, driver calls excluded.
    pub host_seconds_per_kernel: Option<f64>,
    /// The median seconds of driver calls a kernel.
    pub driver_seconds_per_kernel: Option<f64>,
    /// Whether the result of its last run is right; `None` if not asked.
    pub right: Option<bool>,
    /// The largest error of a matrix over its root mean square.
    pub error: Option<f64>,
}

/// Median times of the candidates over that of the best clustering; above 1 the
/// clustering is faster. `None` where one of them did not run.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct Ratios {
    /// Experiment 1: one queue of the GPU.
    pub coarse: Option<f64>,
    /// Experiment 2.
    pub eager: Option<f64>,
    /// Experiment 3.
    pub heft: Option<f64>,
    /// The others.
    pub adaptive: Option<f64>,
    pub batch: Option<f64>,
}

impl PointReport {
    /// The report of a measured point.
    pub fn of(point: &Point) -> Self {
        let candidates = point.candidates.iter();
        let candidates: Vec<_> = candidates
            .map(|candidate| CandidateResult::of(candidate, point.flops))
            .collect();
        Self {
            heads: point.heads,
            beta: point.beta,
            flops: point.flops,
            searched: point.searched,
            ratios: Ratios::of(&candidates),
            candidates,
        }
    }
}

impl CandidateResult {
    /// The result of a candidate whose runs have so many operations.
    fn of(candidate: &Candidate, flops: f64) -> Self {
        let CandidatePolicy {
            policy,
            configuration,
        } = candidate.policy;
        let (q_gpu, q_cpu, width) =
            configuration.map_or((1, 1, 1), |c| (c.q_gpu, c.q_cpu, c.width));
        let h_cpu = configuration
            .filter(|_| policy.takes_map())
            .map(|c| c.h_cpu);
        let of = |figure: fn(&GraphOutcome) -> f64| candidate.runs.iter().map(figure).collect();
        let seconds: Vec<f64> = of(|run| run.seconds);
        let host: Vec<f64> = of(GraphOutcome::host_seconds_per_kernel);
        let driver: Vec<f64> = of(GraphOutcome::driver_seconds_per_kernel);
        let verified = candidate.verified;
        Self {
            name: candidate.name.clone(),
            q_gpu,
            q_cpu,
            h_cpu,
            width,
            flops_per_second: median(&seconds).map(|seconds| flops / seconds),
            host_seconds_per_kernel: median(&host),
            driver_seconds_per_kernel: median(&driver),
            seconds,
            right: verified.map(|verified| verified.right()),
            error: (verified.map(|verified| verified.error)).filter(|error| error.is_finite()),
        }
    }

    /// Its median time over that of the best clustering among the candidates of its point.
    pub fn over_clustering(&self, candidates: &[Self]) -> Option<f64> {
        let seconds = |of: &Self| of.median().filter(|seconds| *seconds > 0.0);
        let best = candidates.iter().find(|c| c.name == "clustering")?;
        Some(seconds(self)? / seconds(best)?)
    }

    /// The median of its runs.
    pub fn median(&self) -> Option<f64> {
        median(&self.seconds)
    }
}

impl Ratios {
    /// Of these contenders.
    pub fn of(candidates: &[CandidateResult]) -> Self {
        let over = |name| {
            let candidate = candidates.iter().find(|c| c.name == name)?;
            candidate.over_clustering(candidates)
        };
        Self {
            coarse: over("coarse"),
            eager: over("eager"),
            heft: over("heft"),
            adaptive: over("adaptive"),
            batch: over("batch"),
        }
    }
}

impl Experiments {
    /// Whether every result that was verified is right.
    pub fn right(&self) -> bool {
        let mut candidates = self.points.iter().flat_map(|point| &point.candidates);
        candidates.all(|c| c.right != Some(false))
    }
}

//! The experiments of the PySchedCL paper on its transformer, as JSON of schema
//! `pdawl-bench-transformer/1` and as text: policies that took turns, point by
//! point, their ratios, and what the paper says of the same ones.

mod paper;
mod text;

use serde::Serialize;

pub use paper::{Claim, claims};

use super::bench::median;
use super::schema::Machine;

/// The schema's name and version.
pub const SCHEMA: &str = "pdawl-bench-transformer/1";

/// Contenders on transformers of several sizes. Times are seconds, virtual if
/// `machine.simulated`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Experiments {
    pub schema: &'static str,
    /// Of the program.
    pub version: &'static str,
    pub machine: Machine,
    pub layers: u32,
    pub seed: u64,
    /// Runs of each contender that count, in turns; each follows one that does
    /// not.
    pub repeats: u32,
    /// Whether inputs and weights stayed on the devices from run to run, and
    /// results were left there.
    pub resident: bool,
    pub points: Vec<Point>,
    /// What the paper says of these ratios.
    pub paper: Vec<Claim>,
    pub interrupted: bool,
    pub notes: Vec<String>,
}

/// One size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    pub heads: u32,
    pub beta: u32,
    /// Operations of all kernels.
    pub flops: f64,
    /// Configurations that the search for the best clustering measured.
    pub searched: usize,
    pub contenders: Vec<Contender>,
    pub ratios: Ratios,
}

/// A policy's runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contender {
    /// `coarse`, `clustering`, `eager`, `heft`, `adaptive` or `batch`.
    pub name: &'static str,
    /// Queues of each GPU and of each CPU, and heads on CPUs.
    pub q_gpu: usize,
    pub q_cpu: usize,
    pub h_cpu: Option<usize>,
    /// Queues that a head is spread over.
    pub width: usize,
    /// By run.
    pub seconds: Vec<f64>,
    /// Of the median run.
    pub flops_per_second: Option<f64>,
    /// The host's own time for a kernel beyond the driver's, in the median run.
    pub host_seconds_per_kernel: Option<f64>,
    /// What the drivers' calls that enqueue took for a kernel, likewise.
    pub driver_seconds_per_kernel: Option<f64>,
    /// Whether the result of its last run was found right; `None` if not asked.
    pub right: Option<bool>,
    pub error: Option<f64>,
}

/// Median times of others over that of the best clustering: above 1 it is
/// faster than they are. `None` where one of them did not run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Ratios {
    /// Experiment 1: one queue of the GPU.
    pub coarse: Option<f64>,
    /// Experiment 2.
    pub eager: Option<f64>,
    /// Experiment 3.
    pub heft: Option<f64>,
    pub adaptive: Option<f64>,
    pub batch: Option<f64>,
}

impl Contender {
    /// The median of its runs.
    pub fn median(&self) -> Option<f64> {
        median(&self.seconds)
    }
}

impl Ratios {
    /// Of these contenders.
    pub fn of(contenders: &[Contender]) -> Self {
        let seconds = |name: &str| {
            let contender = contenders.iter().find(|c| c.name == name)?;
            contender.median().filter(|seconds| *seconds > 0.0)
        };
        let best = seconds("clustering");
        let over = |name| Some(seconds(name)? / best?);
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
    /// Whether every result that was looked at is right.
    pub fn right(&self) -> bool {
        let contenders = self.points.iter().flat_map(|point| &point.contenders);
        contenders.into_iter().all(|c| c.right != Some(false))
    }
}

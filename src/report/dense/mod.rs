//! The report of products and factorisations of dense matrices, as JSON of schema
//! `pdawl-dense/1` and as text.

mod text;

use serde::Serialize;

use super::schema::Machine;
use crate::experiment::tasks::TaskRun;
use crate::graph::TaskGraph;
use crate::machine::DeviceKind;
use crate::verify::product::Verification;

/// The schema's name and version.
pub const SCHEMA: &str = "pdawl-dense/1";

/// Runs of one operation. Times and rates are simulated if `machine.simulated`, but for
/// `setup_seconds` and `deciding_seconds`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DenseReport {
    pub schema: &'static str,
    /// Of the program.
    pub version: &'static str,
    pub operation: DenseDescription,
    pub machine: Machine,
    pub policy: String,
    /// Tasks that a device has at once; `None`: the policy's default.
    pub window: Option<usize>,
    /// The most bytes of each device's own memory; `None`: all.
    pub gpu_memory_bytes: Option<u64>,
    /// The median of `runs`; without any, until the interruption.
    pub seconds: f64,
    /// `None` if no timed run ended.
    pub gflops: Option<f64>,
    /// Seconds of each timed run.
    pub runs: Vec<f64>,
    /// Real seconds until the matrices were in memory, kernels were measured, and a run
    /// that does not count had ended.
    pub setup_seconds: f64,
    /// Real seconds in which the policy decided, in the last run.
    pub deciding_seconds: f64,
    pub devices: Vec<DenseDevice>,
    /// The devices that were lost in any run, and why.
    pub lost: Vec<String>,
    pub verification: Option<DenseVerification>,
    pub interrupted: bool,
    pub notes: Vec<String>,
}

/// What was computed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DenseDescription {
    /// `matmul` or `cholesky`.
    pub name: &'static str,
    /// Of the result.
    pub rows: u32,
    pub columns: u32,
    /// Columns of A; `None` for a factorisation.
    pub depth: Option<u32>,
    /// `f32` or `f64`.
    pub precision: &'static str,
    /// Rows and columns of a tile.
    pub tile: u32,
    pub tasks: usize,
    pub flops: f64,
    /// The files of the given matrices; empty if they were generated.
    pub inputs: Vec<String>,
    /// `natural` or `random`.
    pub order: &'static str,
    pub seed: u64,
}

/// A device's part in the last run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DenseDevice {
    pub name: String,
    pub kind: DeviceKind,
    pub tasks: usize,
    /// Fraction of all operations.
    pub share: f64,
    /// When its last task ended; `None` without any.
    pub finished_seconds: Option<f64>,
    /// In which at least one of its commands ran; `None` without a trace.
    pub busy_seconds: Option<f64>,
    /// Copied from host memory, and back.
    pub loaded_bytes: u64,
    pub written_back_bytes: u64,
    /// From other devices' memory, directly.
    pub peer_bytes: u64,
    /// Data that left its memory before the end.
    pub evictions: u64,
}

/// The check of the result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DenseVerification {
    pub right: bool,
    /// `None` if a number of the result is not finite.
    pub error: Option<f64>,
    pub tolerance: f64,
}

impl From<&Verification> for DenseVerification {
    fn from(of: &Verification) -> Self {
        Self {
            right: of.right(),
            error: of.error.is_finite().then_some(of.error),
            tolerance: of.tolerance,
        }
    }
}

/// What a report has beside the runs.
#[derive(Clone, Debug, PartialEq)]
pub struct DenseContext {
    pub operation: DenseDescription,
    pub machine: Machine,
    pub policy: String,
    pub window: Option<usize>,
    pub gpu_memory_bytes: Option<u64>,
    pub setup_seconds: f64,
    pub lost: Vec<String>,
    pub verification: Option<DenseVerification>,
    pub notes: Vec<String>,
}

/// The report of the seconds of timed runs and of a last run, of which each component is a
/// kernel of the graph.
pub fn report(
    runs: Vec<f64>,
    last: &TaskRun,
    graph: &TaskGraph,
    context: DenseContext,
) -> DenseReport {
    let median = pdawl_profiler::median(&runs);
    DenseReport {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        policy: context.policy,
        window: context.window,
        gpu_memory_bytes: context.gpu_memory_bytes,
        seconds: median.unwrap_or(last.outcome.seconds),
        gflops: median.map(|seconds| context.operation.flops / seconds / 1e9),
        runs,
        setup_seconds: context.setup_seconds,
        deciding_seconds: last.deciding_seconds,
        devices: devices(last, graph, &context.machine),
        lost: context.lost,
        verification: context.verification,
        interrupted: last.outcome.interrupted,
        notes: context.notes,
        operation: context.operation,
        machine: context.machine,
    }
}

fn devices(last: &TaskRun, graph: &TaskGraph, machine: &Machine) -> Vec<DenseDevice> {
    let outcome = &last.outcome;
    let all: f64 = graph.kernels().iter().map(|kernel| kernel.cost.flops).sum();
    let part = |(index, used): (usize, &crate::engine::graph::DeviceUse)| {
        let own = || (outcome.placements.iter()).filter(move |placed| placed.device == index);
        let flops = own().map(|placed| graph.kernels()[placed.component].cost.flops);
        // An empty sum of floats is -0.
        let flops = flops.fold(0.0, |sum: f64, flops| sum + flops);
        DenseDevice {
            name: outcome.devices[index].clone(),
            kind: (machine.devices.get(index)).map_or(DeviceKind::Accelerator, |d| d.kind),
            tasks: used.components,
            share: flops / all,
            finished_seconds: own().map(|placed| placed.ended).reduce(f64::max),
            busy_seconds: used.busy_seconds,
            loaded_bytes: used.bytes_h2d,
            written_back_bytes: used.bytes_d2h,
            peer_bytes: used.bytes_peer,
            evictions: used.evictions,
        }
    };
    outcome.uses.iter().enumerate().map(part).collect()
}

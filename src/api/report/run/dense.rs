//! A product or a factorisation of dense matrices, or another set of tasks that share data: its
//! part of a report, and the report of its runs.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Bounds, Context, Details, Lost, Report, Verification, graph};
use crate::experiment::tasks::TaskRun;
use crate::graph::TaskGraph;
use crate::verify::product;

/// What only products, factorisations and sets of tasks have. Devices are those of the last run.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Dense {
    /// Tasks that a device has at once; null: the policy's default, 16.
    pub window: Option<usize>,
    /// The most bytes that are used of each device's own memory; null: all.
    pub gpu_memory_bytes: Option<u64>,
    /// Real seconds to make the policy and within its calls, in the last run. Simulated
    /// `seconds` do not contain it, measured ones contain the calls.
    pub deciding_seconds: f64,
    /// Of `tasks`, simulated: the least seconds that the machine file allows, the greater of two:
    /// all devices compute at their single-precision rates all the time; every given datum that
    /// is read and every wanted result cross the host's bus once (the links, if the file has no
    /// bus). Null for others.
    pub least_seconds: Option<f64>,
}

/// What the report has beside the runs and what every report has.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    pub window: Option<usize>,
    pub gpu_memory_bytes: Option<u64>,
    pub least_seconds: Option<f64>,
    pub setup_seconds: f64,
    /// Seconds of the timed runs.
    pub runs: Vec<f64>,
    /// The losses of all runs.
    pub lost: Vec<Lost>,
}

impl From<&product::Verification> for Verification {
    fn from(of: &product::Verification) -> Self {
        Self {
            right: of.right(),
            error: of.error.is_finite().then_some(of.error),
            tolerance: Some(of.tolerance),
            wrong: Some(of.wrong),
            ..Self::default()
        }
    }
}

/// The report of timed runs and of a last one, of which each component is a kernel of the
/// graph.
pub fn report(
    last: &TaskRun,
    graph: &TaskGraph,
    context: Context,
    measured: Measured,
    verification: Option<&product::Verification>,
) -> Report {
    let outcome = &last.outcome;
    let median = pdawl_profiler::median(&measured.runs);
    let mut devices = graph::devices(outcome, &context.machine.devices);
    let flops = |kernel: usize| graph.kernels()[kernel].cost.flops;
    let all: f64 = (0..graph.kernels().len()).map(flops).sum();
    for (index, device) in devices.iter_mut().enumerate() {
        let own = outcome.placements.iter().filter(|of| of.device == index);
        // An empty sum of floats is -0.
        let own = own.fold(0.0, |sum: f64, placed| sum + flops(placed.component));
        device.share = own / all;
    }
    let details = Dense {
        window: measured.window,
        gpu_memory_bytes: measured.gpu_memory_bytes,
        deciding_seconds: last.deciding_seconds,
        least_seconds: measured.least_seconds,
    };
    let seconds = median.unwrap_or(outcome.seconds);
    Report {
        runs: measured.runs,
        setup_seconds: Some(measured.setup_seconds),
        throughput: context.workload.rate(median),
        bounds: Bounds::of_graph(outcome, graph),
        verification: verification.map(Verification::from),
        lost: measured.lost,
        interrupted: outcome.interrupted,
        devices,
        ..context.report(seconds, Details::Dense(details))
    }
}

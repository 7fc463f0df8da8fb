//! A product or a factorisation of dense matrices, or another set of tasks that share data: its
//! part of a report, and the report of its runs.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Bounds, Context, Details, Lost, Report, Verification, graph};
use crate::engine::graph::{GraphOutcome, TaskRuns};
use crate::graph::TaskGraph;

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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    pub window: Option<usize>,
    pub gpu_memory_bytes: Option<u64>,
    pub least_seconds: Option<f64>,
    pub setup_seconds: f64,
}

/// The report of timed runs and of a last one, in which each kernel of the graph is a task, and
/// what a comparison of the result has found.
pub fn report(
    ran: &TaskRuns,
    graph: &TaskGraph,
    context: Context,
    measured: Measured,
    verification: Option<Verification>,
) -> Report {
    let outcome = &ran.last.outcome;
    let median = pdawl_profiler::median(&ran.timed);
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
        deciding_seconds: ran.last.deciding_seconds,
        least_seconds: measured.least_seconds,
    };
    let seconds = median.unwrap_or(outcome.seconds);
    Report {
        runs: ran.timed.clone(),
        setup_seconds: Some(measured.setup_seconds),
        throughput: context.workload.rate(median),
        bounds: Bounds::of_graph(outcome, graph),
        verification,
        lost: losses(ran),
        interrupted: outcome.interrupted,
        devices,
        ..context.report(seconds, Details::Dense(details))
    }
}

/// The losses of all runs.
pub(super) fn losses(ran: &TaskRuns) -> Vec<Lost> {
    let all = ran.lossy.iter().chain([&ran.last.outcome]);
    let of_run = |run: &GraphOutcome| -> Vec<Lost> {
        let losses = run.losses.iter();
        losses.map(|loss| graph::lost(run, loss)).collect()
    };
    all.flat_map(of_run).collect()
}

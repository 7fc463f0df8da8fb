//! A product or a factorisation of dense matrices, or another set of tasks that share data: its
//! part of a report, and the report of its runs.

use schemars::JsonSchema;
use serde::Serialize;

use super::graph::of_runs;
use super::{Context, Details, Report, Verification};
use crate::engine::graph::GraphRuns;
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
    ran: &GraphRuns,
    graph: &TaskGraph,
    context: Context,
    measured: Measured,
    verification: Option<Verification>,
) -> Report {
    let details = Dense {
        window: measured.window,
        gpu_memory_bytes: measured.gpu_memory_bytes,
        deciding_seconds: ran.deciding_seconds,
        least_seconds: measured.least_seconds,
    };
    let setup = measured.setup_seconds;
    let mut report = of_runs(
        ran,
        graph,
        context,
        (setup, verification),
        Details::Dense(details),
    );
    let flops = |kernel: usize| graph.kernels()[kernel].cost.flops;
    let all: f64 = (0..graph.kernels().len()).map(flops).sum();
    for (index, device) in report.devices.iter_mut().enumerate() {
        let own = ran.last.placements.iter().filter(|of| of.device == index);
        // An empty sum of floats is -0.
        let own = own.fold(0.0, |sum: f64, placed| sum + flops(placed.component));
        device.share = own / all;
    }
    report
}

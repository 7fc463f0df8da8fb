//! A graph of kernels, or a set of tasks that share data: its part of a report, and the report of
//! its runs.

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Bounds, Context, Details, DevicePart, Lost, Report, Verification, device_name, fraction,
};
use crate::engine::graph::search::SearchResult;
use crate::engine::graph::{GraphLoss, GraphOutcome, GraphRuns, TimedRun};
use crate::graph::{Components, TaskGraph};
use crate::machine::Device;
use crate::policy::Configuration;

/// What only runs of graphs have. Devices and components are those of the last run.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Graph {
    /// Number of kernels, and of data.
    pub kernels: usize,
    pub data: usize,
    /// Data that one kernel makes and another reads.
    pub edges: usize,
    /// Number of components (with `eager` and `heft` each kernel is one), and levels of their
    /// dependencies.
    pub components: usize,
    pub levels: usize,
    /// The best configuration of `--search`.
    pub found: Option<MeasuredConfiguration>,
    /// All configurations that the search measured.
    pub tried: Vec<MeasuredConfiguration>,
    /// Seconds of the host a kernel, in the median run: of the program itself (0 in a
    /// simulation), and of the drivers' calls for it and its copies (0 if not counted).
    pub host_seconds_per_kernel: f64,
    pub driver_seconds_per_kernel: f64,
    /// Components in the order in which they ended.
    pub placements: Vec<PlacedComponent>,
}

/// A configuration and its median seconds.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct MeasuredConfiguration {
    #[serde(flatten)]
    pub configuration: Configuration,
    pub seconds: f64,
}

impl From<&(Configuration, f64)> for MeasuredConfiguration {
    fn from((configuration, seconds): &(Configuration, f64)) -> Self {
        Self {
            configuration: *configuration,
            seconds: *seconds,
        }
    }
}

/// Where a component ran, and when.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct PlacedComponent {
    pub component: usize,
    pub level: usize,
    pub device: String,
    /// Number of its kernels.
    pub kernels: usize,
    /// Seconds from the run's begin.
    pub dispatched_seconds: f64,
    pub ended_seconds: f64,
}

/// What the report of a graph has beside the runs and what every report has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    pub setup_seconds: f64,
    pub search: Option<SearchResult>,
    /// Whether the results are right, and the greatest error.
    pub verified: Option<(bool, f64)>,
}

/// The report of timed runs and of a last one, which alone may have a trace.
pub fn report(
    ran: &GraphRuns,
    (graph, components): (&TaskGraph, &Components),
    context: Context,
    measured: Measured,
) -> Report {
    let last = &ran.last;
    let mut order: Vec<&TimedRun> = ran.timed.iter().collect();
    order.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let median = order.get(order.len() / 2).copied().copied();
    let median = median.unwrap_or_else(|| TimedRun::from(last));
    let levels = components.list().iter().map(|c| c.level + 1).max();
    let placed = last.placements.iter().map(|placed| PlacedComponent {
        component: placed.component,
        level: placed.level,
        device: device_name(&last.devices, placed.device),
        kernels: components.list()[placed.component].kernels.len(),
        dispatched_seconds: placed.dispatched,
        ended_seconds: placed.ended,
    });
    let search = measured.search.as_ref();
    let details = Graph {
        kernels: graph.kernels().len(),
        data: graph.data().len(),
        edges: graph.edges().count(),
        components: components.len(),
        levels: levels.unwrap_or(0),
        found: search.and_then(|search| search.best.as_ref().map(MeasuredConfiguration::from)),
        tried: (search.iter().flat_map(|search| &search.all))
            .map(MeasuredConfiguration::from)
            .collect(),
        host_seconds_per_kernel: median.host_seconds_per_kernel,
        driver_seconds_per_kernel: median.driver_seconds_per_kernel,
        placements: placed.collect(),
    };
    let verification = measured.verified.map(|(right, error)| Verification {
        right,
        error: error.is_finite().then_some(error),
        ..Verification::default()
    });
    let of_setup = (measured.setup_seconds, verification);
    of_runs(ran, graph, context, of_setup, Details::Graph(details))
}

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
pub struct MeasuredTasks {
    pub window: Option<usize>,
    pub gpu_memory_bytes: Option<u64>,
    pub least_seconds: Option<f64>,
    pub setup_seconds: f64,
}

/// The report of timed runs and of a last one, in which each kernel of the graph is a task, and
/// what a comparison of the result has found.
pub fn report_tasks(
    ran: &GraphRuns,
    graph: &TaskGraph,
    context: Context,
    measured: MeasuredTasks,
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
        // Where operations are not known, the share of the kernels stays.
        if all > 0.0 {
            device.share = own / all;
        }
    }
    report
}

/// What the reports of all runs of a graph have.
pub(super) fn of_runs(
    ran: &GraphRuns,
    graph: &TaskGraph,
    context: Context,
    (setup_seconds, verification): (f64, Option<Verification>),
    details: Details,
) -> Report {
    let (runs, last) = (ran.seconds(), &ran.last);
    let median = pdawl_profiler::median(&runs);
    Report {
        runs,
        setup_seconds: Some(setup_seconds),
        throughput: context.workload.rate(median),
        bounds: Bounds::of_graph(last, graph),
        verification,
        lost: losses(ran),
        interrupted: last.interrupted,
        devices: devices(last, &context.machine.devices),
        ..context.report(median.unwrap_or(last.seconds), details)
    }
}

/// The losses of all runs.
pub(super) fn losses(ran: &GraphRuns) -> Vec<Lost> {
    let all = ran.lossy.iter().chain([&ran.last]);
    all.flat_map(|run| run.losses.iter().map(|loss| lost(run, loss)))
        .collect()
}

/// What a report says of a loss in a run.
fn lost(run: &GraphOutcome, loss: &GraphLoss) -> Lost {
    Lost {
        device: Some(device_name(&run.devices, loss.device)),
        why: Some(loss.why.clone()),
        repeated: loss.repeated.len() as u64,
        back: loss.back,
        ..Lost::default()
    }
}

/// The devices' parts in a run, by their kernels.
pub(super) fn devices(run: &GraphOutcome, devices: &[Device]) -> Vec<DevicePart> {
    let part = |(index, used): (usize, &crate::engine::graph::DeviceUse)| {
        let own = run.placements.iter().filter(|of| of.device == index);
        DevicePart {
            name: device_name(&run.devices, index),
            kind: devices.get(index).map(|device| device.kind),
            share: fraction(used.kernels, run.kernels()),
            units: used.components as u64,
            kernels: Some(used.kernels),
            command_graphs: Some(used.graphs as u64),
            busy_seconds: used.busy_seconds,
            finished_seconds: own.map(|placed| placed.ended).reduce(f64::max),
            queues: Some(used.queues),
            writes: Some(used.writes),
            reads: Some(used.reads),
            bytes_h2d: Some(used.bytes_h2d),
            bytes_d2h: Some(used.bytes_d2h),
            bytes_peer: Some(used.bytes_peer),
            evictions: Some(used.evictions),
            ..DevicePart::default()
        }
    };
    run.uses.iter().enumerate().map(part).collect()
}

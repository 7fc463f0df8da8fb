//! The report of runs of a graph as JSON, schema `pdawl-graph/1`; `text` renders it.

mod text;

use serde::Serialize;
use serde_json::Value;

use super::schema::Machine;
use crate::engine::graph::GraphOutcome;
use crate::graph::{Components, TaskGraph};
use crate::machine::DeviceKind;
use crate::policy::Configuration;

pub use text::render;

/// The schema's name and version.
pub const SCHEMA: &str = "pdawl-graph/1";

/// Runs of a graph under one policy. Times are in seconds, on the simulator's virtual
/// clock if `machine.simulated`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GraphReport {
    pub schema: &'static str,
    /// Of the program.
    pub version: &'static str,
    pub graph: GraphDescription,
    pub machine: Machine,
    pub policy: &'static str,
    /// The configuration that a search found best; `None` if none was made.
    pub found: Option<MeasuredConfiguration>,
    /// All configurations that the search measured.
    pub tried: Vec<MeasuredConfiguration>,
    /// The median of `runs`.
    pub seconds: f64,
    /// Seconds of each timed run.
    pub runs: Vec<f64>,
    /// Seconds until memory, queues and kernels were ready and the graph had run once;
    /// that run does not count.
    pub setup_seconds: f64,
    /// Seconds of the host a kernel, in the median run: of the program itself, and of
    /// driver calls.
    pub host_seconds_per_kernel: f64,
    pub driver_seconds_per_kernel: f64,
    pub devices: Vec<DevicePart>,
    /// The components of the last run, in the order in which they ended.
    pub components: Vec<PlacedComponent>,
    pub lost: Vec<LostDevice>,
    /// Whether the results are right; `None` if not asked.
    pub verified: Option<bool>,
    /// The greatest error of the results.
    pub max_error: Option<f64>,
    pub interrupted: bool,
    pub notes: Vec<String>,
}

/// The graph that was run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GraphDescription {
    /// `transformer`, `dag` ...
    pub name: &'static str,
    /// One line for people.
    pub title: String,
    /// The workload's parameters.
    pub parameters: Value,
    pub kernels: usize,
    pub data: usize,
    /// Data that one kernel makes and another reads.
    pub edges: usize,
    pub components: usize,
    /// Levels of components.
    pub levels: usize,
}

impl GraphDescription {
    /// A graph and its components, with a name, a title and parameters.
    pub fn new(
        name: &'static str,
        title: String,
        parameters: Value,
        graph: &TaskGraph,
        components: &Components,
    ) -> Self {
        let levels = components.list().iter().map(|c| c.level + 1).max();
        Self {
            name,
            title,
            parameters,
            kernels: graph.kernels().len(),
            data: graph.data().len(),
            edges: graph.edges().count(),
            components: components.len(),
            levels: levels.unwrap_or(0),
        }
    }
}

/// A configuration and its median seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredConfiguration {
    /// Queues of each GPU and of each CPU device.
    pub q_gpu: usize,
    pub q_cpu: usize,
    /// Components of each level on CPU devices.
    pub h_cpu: usize,
    /// Queues that a component is spread over on a GPU.
    pub width: usize,
    pub seconds: f64,
}

impl From<&(Configuration, f64)> for MeasuredConfiguration {
    fn from((configuration, seconds): &(Configuration, f64)) -> Self {
        Self {
            q_gpu: configuration.q_gpu,
            q_cpu: configuration.q_cpu,
            h_cpu: configuration.h_cpu,
            width: configuration.width,
            seconds: *seconds,
        }
    }
}

/// A device's part in the last run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DevicePart {
    pub name: String,
    pub kind: DeviceKind,
    pub components: usize,
    pub kernels: u64,
    /// Fraction of all kernels.
    pub share: f64,
    /// Queues that were used.
    pub queues: usize,
    pub writes: u64,
    pub reads: u64,
    pub bytes_h2d: u64,
    pub bytes_d2h: u64,
    /// Seconds in which at least one of its commands ran; `None` without a trace.
    pub busy_seconds: Option<f64>,
}

/// Where a component ran, and when, in seconds from the run's begin.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlacedComponent {
    pub component: usize,
    pub level: usize,
    pub device: String,
    pub kernels: usize,
    pub dispatched_seconds: f64,
    pub ended_seconds: f64,
}

/// A device that was lost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LostDevice {
    pub device: String,
    pub why: String,
    /// Components that were run again.
    pub repeated: Vec<usize>,
    /// Whether it came back and took part again.
    pub back: bool,
}

/// What a report has beside the outcomes.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportContext {
    pub graph: GraphDescription,
    pub machine: Machine,
    pub setup_seconds: f64,
    pub found: Option<MeasuredConfiguration>,
    pub tried: Vec<MeasuredConfiguration>,
    pub verified: Option<bool>,
    pub max_error: Option<f64>,
    pub notes: Vec<String>,
}

/// The report of timed runs and of a last one, which alone may have a trace.
pub fn report(
    timed: &[GraphOutcome],
    last: &GraphOutcome,
    components: &Components,
    told: ReportContext,
) -> GraphReport {
    let mut order: Vec<&GraphOutcome> = timed.iter().collect();
    order.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let median = order.get(order.len() / 2).copied().unwrap_or(last);
    let each = |seconds: f64| seconds / median.kernels().max(1) as f64;
    let all = last.kernels().max(1) as f64;
    let name = |device: usize| {
        let name = last.devices.get(device).cloned();
        name.unwrap_or_else(|| format!("device {device}"))
    };
    let losses = timed.iter().chain([last]).flat_map(|run| &run.losses);
    GraphReport {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        policy: last.policy,
        found: told.found,
        tried: told.tried,
        seconds: median.seconds,
        runs: timed.iter().map(|run| run.seconds).collect(),
        setup_seconds: told.setup_seconds,
        host_seconds_per_kernel: median.host_seconds_per_kernel(),
        driver_seconds_per_kernel: each(median.driver_seconds),
        devices: last
            .uses
            .iter()
            .enumerate()
            .map(|(device, used)| DevicePart {
                name: name(device),
                kind: (told.machine.devices.get(device))
                    .map_or(DeviceKind::Accelerator, |d| d.kind),
                components: used.components,
                kernels: used.kernels,
                share: used.kernels as f64 / all,
                queues: used.queues,
                writes: used.writes,
                reads: used.reads,
                bytes_h2d: used.bytes_h2d,
                bytes_d2h: used.bytes_d2h,
                busy_seconds: used.busy_seconds,
            })
            .collect(),
        components: last
            .placements
            .iter()
            .map(|placed| PlacedComponent {
                component: placed.component,
                level: placed.level,
                device: name(placed.device),
                kernels: components.list()[placed.component].kernels.len(),
                dispatched_seconds: placed.dispatched,
                ended_seconds: placed.ended,
            })
            .collect(),
        lost: losses
            .map(|loss| LostDevice {
                device: name(loss.device),
                why: loss.why.clone(),
                repeated: loss.repeated.clone(),
                back: loss.back,
            })
            .collect(),
        verified: told.verified,
        max_error: told.max_error,
        interrupted: last.interrupted,
        notes: told.notes,
        graph: told.graph,
        machine: told.machine,
    }
}

//! The report of a run over the nodes of a cluster, as JSON of schema `pdawl-cluster/1` and
//! as text.

mod text;

use serde::Serialize;

use crate::cluster::record::{ClusterOutcome, DevicePart, NodeRecord};

/// The schema's name and version.
pub const SCHEMA: &str = "pdawl-cluster/1";

/// A run. Times are simulated if `simulated`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClusterReport {
    pub schema: &'static str,
    /// Of the program.
    pub version: &'static str,
    pub workload: WorkloadDescription,
    pub simulated: bool,
    /// The name of the simulated cluster.
    pub cluster: Option<String>,
    pub policy: String,
    /// Subtasks beyond those that compute whose data a node fetches.
    pub prefetch: u32,
    /// From the first task's begin to the last one's end.
    pub seconds: f64,
    /// `None` if the operations are not known.
    pub gflops: Option<f64>,
    pub restarts: u64,
    /// Of a run that ends with a tolerance.
    pub steps: Option<ClusterSteps>,
    pub requests: Option<Requests>,
    pub nodes: Vec<ClusterNode>,
    /// A number of the workload, if it has one.
    pub figure: Option<ClusterFigure>,
    pub verification: Option<ClusterVerification>,
    pub notes: Vec<String>,
}

/// What was computed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkloadDescription {
    /// As in `pdawl run NAME`.
    pub name: &'static str,
    /// Its sizes, for people.
    pub size: String,
    pub tasks: u64,
    /// Subtasks of all tasks.
    pub subtasks: u64,
    /// Zero if they are not known.
    pub flops: f64,
}

/// Requests of nodes for others' work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Requests {
    pub asked: u64,
    /// Those that brought at least one subtask.
    pub brought: u64,
}

/// The steps of a run that ends with a tolerance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClusterSteps {
    pub done: u64,
    pub most: u64,
    pub tolerance: f64,
    /// Whether the figure is at most the tolerance.
    pub reached: bool,
}

/// When a run ends early.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Of the workload's figure.
    pub tolerance: f64,
    /// The steps of all tasks.
    pub steps: u64,
    pub tasks: u64,
}

/// A node's part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClusterNode {
    pub name: String,
    /// Subtasks whose results count.
    pub subtasks: u64,
    /// Subtasks whose results another node had first.
    pub copied: u64,
    /// Subtasks that it gave back for other nodes.
    pub given_back: u64,
    pub lost: bool,
    pub busy_seconds: f64,
    pub idle_seconds: f64,
    pub received_bytes: u64,
    pub sent_bytes: u64,
    pub devices: Vec<DevicePart>,
}

/// A number of the workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClusterFigure {
    pub name: &'static str,
    /// `None` if it is not finite.
    pub value: Option<f64>,
    /// Its name for people.
    #[serde(skip)]
    pub title: &'static str,
}

/// The check of the result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClusterVerification {
    pub right: bool,
    /// Numbers that were compared with a reference in double precision.
    pub numbers: u64,
    pub wrong: u64,
    /// The greatest error as a multiple of what rounding allows; `None` if a number is not
    /// finite.
    pub worst: Option<f64>,
    /// Of factors: LAPACK's ratio `|P A - L U| / (n |A| u)`; `None` if it is not finite.
    pub residual: Option<f64>,
    /// Of factors: the greatest number of U over the greatest of A.
    pub growth: Option<f64>,
}

/// What a report has beside the run.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterContext {
    pub workload: WorkloadDescription,
    /// The name of its figure, and that for people.
    pub figure: Option<[&'static str; 2]>,
    pub tolerance: Option<Tolerance>,
    pub simulated: bool,
    /// The name of the simulated cluster.
    pub cluster: Option<String>,
    pub policy: String,
    pub prefetch: u32,
    pub notes: Vec<String>,
}

/// The report of a run.
pub fn report(outcome: &ClusterOutcome, context: ClusterContext) -> ClusterReport {
    let verification = outcome.checked().map(|checked| ClusterVerification {
        right: checked.wrong == 0,
        numbers: checked.numbers,
        wrong: checked.wrong,
        worst: finite(checked.worst),
        residual: checked.factors.and_then(|of| finite(of.residual)),
        growth: checked.factors.and_then(|of| finite(of.growth)),
    });
    ClusterReport {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        simulated: context.simulated,
        cluster: context.cluster,
        policy: context.policy,
        prefetch: context.prefetch,
        seconds: outcome.seconds,
        gflops: (context.workload.flops > 0.0)
            .then(|| context.workload.flops / outcome.seconds / 1e9),
        restarts: outcome.restarts,
        steps: context.tolerance.map(|limit| ClusterSteps {
            done: limit.steps * outcome.tasks / limit.tasks.max(1),
            most: limit.steps,
            tolerance: limit.tolerance,
            reached: outcome
                .figure
                .is_some_and(|change| change <= limit.tolerance),
        }),
        requests: outcome
            .requests
            .map(|[asked, brought]| Requests { asked, brought }),
        nodes: outcome.nodes.iter().map(node).collect(),
        figure: (context.figure.zip(outcome.figure)).map(|([name, title], value)| ClusterFigure {
            name,
            value: value.is_finite().then_some(value),
            title,
        }),
        verification,
        notes: context.notes,
        workload: context.workload,
    }
}

/// What a message has as the greatest number is infinite.
fn finite(number: f64) -> Option<f64> {
    (number < f64::MAX).then_some(number)
}

fn node(record: &NodeRecord) -> ClusterNode {
    ClusterNode {
        name: record.name.clone(),
        subtasks: record.subtasks,
        copied: record.copied,
        given_back: record.given_back,
        lost: record.lost,
        busy_seconds: record.busy_seconds,
        idle_seconds: record.idle_seconds,
        received_bytes: record.received_bytes,
        sent_bytes: record.sent_bytes,
        devices: record.devices.clone(),
    }
}

//! Tasks over spaces, on nodes or on one machine: their part of a report, and the report of
//! an outcome.

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Bounds, Context, Details, DevicePart, Lost, Parameters, Report, Verification, fraction, graph,
};
use crate::cluster::record::{ClusterOutcome, NodeRecord};
use crate::engine::cluster::simulate::{Busiest, Resource};
use crate::engine::graph::GraphRuns;
use crate::graph::TaskGraph;
use crate::verify::Checked;
use crate::verify::overflow::{note_of_change, notes};

/// What only runs of tasks over spaces have.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Tasks {
    /// Long blocks that are on their way to a node at once.
    pub prefetch: u32,
    /// How often the tasks began anew, since results were lost with a node.
    pub restarts: u64,
    /// Of a run with `--tolerance`.
    pub steps: Option<Steps>,
    /// Null if the policy makes no requests.
    pub requests: Option<Requests>,
    /// A number of the workload; null if it has none, and of simulated runs.
    pub figure: Option<Figure>,
    /// Simulated over several nodes: the rows and columns of a subtask's block, its lines or its
    /// numbers, where they depend on the nodes; null for others.
    pub tile: Option<u64>,
    /// Simulated over several nodes: what was busy for the greatest part of the run; null for
    /// others, and if nothing was.
    pub busiest: Option<BusiestPart>,
}

/// What was busy for the greatest part of a run.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct BusiestPart {
    /// `device`, `device_link`, `link_out`, `link_in`, `switch` or `driver`.
    pub kind: &'static str,
    /// The node that has it; the switch belongs to none.
    pub node: Option<u32>,
    /// The name of the device, or of the device that the link is of.
    pub device: Option<String>,
    /// The part of the run, from 0 to 1.
    pub share: f64,
}

impl From<Busiest> for BusiestPart {
    fn from(busiest: Busiest) -> Self {
        let (kind, node, device) = match busiest.resource {
            Resource::Device(node, name) => ("device", Some(node), Some(name)),
            Resource::DeviceLink(node, name) => ("device_link", Some(node), Some(name)),
            Resource::LinkOut(node) => ("link_out", Some(node), None),
            Resource::LinkIn(node) => ("link_in", Some(node), None),
            Resource::Switch => ("switch", None, None),
            Resource::Driver(node) => ("driver", Some(node), None),
        };
        Self {
            kind,
            node,
            device,
            share: busiest.share,
        }
    }
}

/// A node's part. All figures of a lost node are 0.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Node {
    /// The name of its machine.
    pub name: String,
    /// Subtasks whose results count.
    pub subtasks: u64,
    /// Subtasks whose results another node had first.
    pub copied: u64,
    /// Subtasks that it gave back for other nodes, before they began.
    pub given_back: u64,
    /// Subtasks that several of its devices computed together.
    pub divided: u64,
    /// Runs of subtasks that were given up, as they touched what they had not named.
    pub touched_runs: u64,
    /// Blocks that subtasks read since they touched them, whichever node had them.
    pub touched_blocks: u64,
    /// Bytes of these blocks.
    pub touched_bytes: u64,
    /// Seconds in which at least one of its devices computed, and in which none did.
    pub busy_seconds: f64,
    pub idle_seconds: f64,
    /// Bytes of spaces that came from other nodes, and went to them.
    pub received_bytes: u64,
    pub sent_bytes: u64,
}

/// Requests of nodes for others' work.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Requests {
    pub asked: u64,
    /// Those that brought at least one subtask.
    pub brought: u64,
}

/// The steps of a run that ends with a tolerance.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Steps {
    /// Steps that were run, and the greatest number of them.
    pub done: u64,
    pub most: u64,
    pub tolerance: f64,
    /// Whether the figure is at most the tolerance.
    pub reached: bool,
}

/// A number of a workload.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Figure {
    /// `eigenvalue`: the estimate of a power iteration; `change`: the sum of all ranks'
    /// changes in the last step of a page rank, or the largest change of a point in that of a
    /// stencil.
    pub name: &'static str,
    /// Null if it is not finite.
    pub value: Option<f64>,
    /// Its name for people.
    #[serde(skip)]
    pub title: &'static str,
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

/// What the report has beside the outcome and what every report has.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Asked {
    /// The name of the workload's figure, and that for people.
    pub figure: Option<[&'static str; 2]>,
    pub tolerance: Option<Tolerance>,
    pub prefetch: u32,
}

/// The report of a run.
pub fn report(outcome: &ClusterOutcome, context: Context, asked: Asked) -> Report {
    let checked = outcome.checked();
    let verification = checked.as_ref().and_then(Verification::of);
    let details = Tasks {
        prefetch: asked.prefetch,
        restarts: outcome.restarts,
        steps: asked.tolerance.map(|limit| Steps {
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
        figure: (asked.figure.zip(outcome.figure)).map(|([name, title], value)| Figure {
            name,
            value: value.is_finite().then_some(value),
            title,
        }),
        tile: None,
        busiest: None,
    };
    let lost = outcome.nodes.iter().enumerate().filter(|(_, of)| of.lost);
    let lost = lost.map(|(rank, _)| Lost {
        node: Some(rank),
        ..Lost::default()
    });
    let notes = checked.and_then(|checked| notes(checked.numbers, checked.overflowed));
    let of_change = asked
        .tolerance
        .zip(outcome.figure)
        .and_then(|(limit, change)| {
            note_of_change(change, limit.steps * outcome.tasks / limit.tasks.max(1))
        });
    let context = Context {
        notes: [context.notes, notes.into_iter().chain(of_change).collect()].concat(),
        ..context
    };
    Report {
        throughput: context.workload.rate(Some(outcome.seconds)),
        verification,
        lost: lost.collect(),
        devices: devices(&outcome.nodes),
        nodes: outcome.nodes.iter().map(node).collect(),
        ..context.report(outcome.seconds, Details::Nodes(details))
    }
}

/// The report of a run on one machine by itself, whose task graph tells more of it.
pub fn report_alone(
    (ran, outcome): (&GraphRuns, &ClusterOutcome),
    tasks: &TaskGraph,
    context: Context,
    measured: graph::MeasuredTasks,
) -> Report {
    if let Parameters::Dense(_) = &context.workload.parameters {
        let checked = outcome.checked();
        let verification = checked.as_ref().and_then(Verification::of);
        return graph::report_tasks(ran, tasks, context, measured, verification);
    }
    let last = &ran.last;
    let of_graph = graph::devices(last, &context.machine.devices);
    let report = report(outcome, context, Asked::default());
    let devices = report.devices.into_iter().zip(of_graph);
    let devices = devices.map(|(of_node, of_graph)| DevicePart {
        node: of_node.node,
        share: of_node.share,
        units: of_node.units,
        subtask_seconds: of_node.subtask_seconds,
        ..of_graph
    });
    Report {
        setup_seconds: Some(measured.setup_seconds),
        bounds: Bounds::of_graph(last, tasks),
        lost: graph::losses(ran),
        interrupted: last.interrupted,
        devices: devices.collect(),
        ..report
    }
}

impl Verification {
    /// What a comparison found. What was compared with nothing is neither right nor wrong.
    pub(super) fn of(checked: &Checked) -> Option<Self> {
        (checked.numbers > 0 || checked.overflowed == 0).then(|| Self {
            right: checked.wrong == 0,
            error: finite(checked.worst),
            tolerance: Some(1.0),
            numbers: Some(checked.numbers),
            wrong: Some(checked.wrong),
            residual: checked.factors.and_then(|of| finite(of.residual)),
            growth: checked.factors.and_then(|of| finite(of.growth)),
            at: checked.at,
        })
    }
}

/// What a message has as the greatest number is infinite.
fn finite(number: f64) -> Option<f64> {
    (number < f64::MAX).then_some(number)
}

fn node(record: &NodeRecord) -> Node {
    Node {
        name: record.name.clone(),
        subtasks: record.subtasks,
        copied: record.copied,
        given_back: record.given_back,
        divided: record.divided,
        touched_runs: record.touched.runs,
        touched_blocks: record.touched.blocks,
        touched_bytes: record.touched.bytes,
        busy_seconds: record.busy_seconds,
        idle_seconds: record.idle_seconds,
        received_bytes: record.received_bytes,
        sent_bytes: record.sent_bytes,
    }
}

fn devices(nodes: &[NodeRecord]) -> Vec<DevicePart> {
    let all = nodes.iter().flat_map(|node| &node.devices);
    let all = all.map(|device| device.subtasks).sum();
    let of_node = |(rank, node): (usize, &NodeRecord)| {
        let devices = node.devices.iter().map(move |device| DevicePart {
            name: device.name.clone(),
            node: Some(rank),
            share: fraction(device.subtasks, all),
            units: device.subtasks,
            subtask_seconds: Some(device.seconds),
            ..DevicePart::default()
        });
        devices.collect::<Vec<_>>()
    };
    nodes.iter().enumerate().flat_map(of_node).collect()
}

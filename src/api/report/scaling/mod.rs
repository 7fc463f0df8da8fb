//! The report of a workload on growing numbers of nodes, simulated: JSON of schema
//! `pdawl-scaling/2`, and text.

#[cfg(feature = "text")]
mod text;

use schemars::JsonSchema;
use serde::Serialize;

use super::run::Workload;
use crate::engine::cluster::simulate::{Busiest, Report, Resource};

/// Simulated runs of one workload.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ScalingReport {
    #[serde(flatten)]
    pub context: ScalingContext,
    /// By the number of nodes, ascending.
    pub runs: Vec<ScalingRun>,
}

/// What is known before the runs.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ScalingContext {
    /// Always true.
    pub simulated: bool,
    /// On the most nodes.
    pub workload: Workload,
    pub cluster: String,
    pub policy: String,
    pub prefetch: u32,
    pub seed: u64,
    /// Relative standard deviation of subtasks' times.
    pub noise: f64,
    /// What speed-ups count from.
    pub reference: Reference,
    pub notes: Vec<String>,
}

/// The run that speed-ups count from.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Reference {
    /// In words.
    pub what: String,
    pub nodes: u64,
    pub seconds: f64,
}

/// A run on some nodes.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ScalingRun {
    pub nodes: u64,
    /// The rows and columns of a subtask's block, its lines or its numbers; null: they do not
    /// depend on the nodes.
    pub tile: Option<u64>,
    pub seconds: f64,
    /// Operations over `seconds`, in 10^9/s.
    pub gflops: f64,
    /// Seconds of the reference over those of this run.
    pub speedup: f64,
    /// The speed-up, divided by how many times as many nodes as the reference has.
    pub efficiency: f64,
    /// Data of spaces that nodes sent.
    pub sent_bytes: u64,
    /// The part of the time in which no device of a node computed, the mean of all nodes.
    pub idle: f64,
    /// Null: nothing was busy.
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

impl ScalingContext {
    /// The row of a run with subtasks of this size.
    pub fn run(&self, report: &Report, tile: Option<u64>) -> ScalingRun {
        let reference = &self.reference;
        let count = report.nodes.len() as f64;
        let computing: f64 = report.nodes.iter().map(|node| node.computing).sum();
        let speedup = reference.seconds / report.seconds;
        ScalingRun {
            nodes: report.nodes.len() as u64,
            tile,
            seconds: report.seconds,
            gflops: self.workload.flops() / report.seconds / 1e9,
            speedup,
            efficiency: speedup * reference.nodes as f64 / count,
            sent_bytes: report.nodes.iter().map(|node| node.bytes_out).sum(),
            idle: (1.0 - computing / (count * report.seconds)).clamp(0.0, 1.0),
            busiest: report.busiest.clone().map(BusiestPart::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::run::Parameters;
    use super::super::run::workload::TasksParameters;
    use super::*;
    use crate::engine::cluster::simulate::NodeRow;
    use crate::spread::Requests;

    /// A workload of 24 billion operations.
    fn context(reference: Reference) -> ScalingContext {
        ScalingContext {
            simulated: true,
            workload: Workload::new(
                "some",
                Parameters::Tasks(TasksParameters {
                    size: "much".to_owned(),
                    tasks: 1,
                    subtasks: 1,
                    flops: 24e9,
                }),
            ),
            cluster: "one".to_owned(),
            policy: "static".to_owned(),
            prefetch: 0,
            seed: 1,
            noise: 0.0,
            reference,
            notes: Vec::new(),
        }
    }

    /// Nodes that compute for half of the time and send 10 bytes each.
    fn run(nodes: usize, seconds: f64) -> Report {
        let row = NodeRow {
            computing: seconds / 2.0,
            bytes_out: 10,
            ..NodeRow::default()
        };
        Report {
            seconds,
            nodes: vec![row; nodes],
            requests: Requests::default(),
            restarts: 0,
            busiest: Some(Busiest {
                resource: Resource::LinkIn(1),
                share: 0.75,
            }),
            messages: 0,
            decided: Duration::ZERO,
            timeline: Vec::new(),
        }
    }

    #[test]
    fn speed_ups_and_efficiencies_are_over_the_reference() {
        let reference = Reference {
            what: "one machine".to_owned(),
            nodes: 1,
            seconds: 12.0,
        };
        let context = context(reference);
        let all = [run(2, 12.0), run(4, 6.0), run(16, 3.0)];
        let rows: Vec<_> = all.iter().map(|run| context.run(run, None)).collect();
        let figures: Vec<_> = rows
            .iter()
            .map(|row| (row.nodes, row.speedup, row.efficiency, row.gflops))
            .collect();
        assert_eq!(
            figures,
            [(2, 1.0, 0.5, 2.0), (4, 2.0, 0.5, 4.0), (16, 4.0, 0.25, 8.0)]
        );
        assert!(rows.iter().all(|row| row.idle == 0.5));
        assert_eq!(rows[2].sent_bytes, 160);
    }

    /// Figures as long as they become.
    #[test]
    fn lines_are_below_their_headings() {
        let context = context(Reference {
            what: "one machine".to_owned(),
            nodes: 1,
            seconds: 1e-3,
        });
        let plain = |text: String| anstream::adapter::strip_str(&text).to_string();
        let heading = plain(context.heading());
        let names = heading.lines().last().unwrap();
        let ends = |line: &str| line.find("  node").or(line.find("  Busiest"));
        for (nodes, seconds) in [(1, 12.0), (100_000, 1.234e-6), (7, 123_456.0)] {
            let run = context.run(&run(nodes, seconds), Some(15_625_000));
            let line = plain(run.line());
            assert_eq!(ends(&line), ends(names), "{names}\n{line}");
        }
    }

    #[test]
    fn the_busiest_part_is_named_in_words() {
        let device = Busiest {
            resource: Resource::DeviceLink(3, "gpu0".to_owned()),
            share: 0.5,
        };
        assert_eq!(
            BusiestPart::from(device).in_words(),
            "node 3, link of gpu0 50.0 %"
        );
        let switch = Busiest {
            resource: Resource::Switch,
            share: 1.0,
        };
        assert!(BusiestPart::from(switch).in_words().starts_with("switch"));
    }
}

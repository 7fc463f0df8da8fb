//! The report as text.

use std::fmt::{self, Write};

use super::super::style::{ALARM, FAINT, MAIN, STRONG, line, notes, origin, styled, written};
use super::super::table;
use super::{ClusterNode, ClusterReport};
use crate::quantity::{Bytes, Count, Seconds};

const HEADER: [&str; 9] = [
    "Node",
    "Devices",
    "Subtasks",
    "Copied",
    "Given back",
    "Busy",
    "Idle",
    "Received",
    "Sent",
];

impl ClusterReport {
    /// The report as text, with ANSI styles.
    pub fn render(&self) -> String {
        written(|out| self.write(out))
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let of = &self.workload;
        let (name, size) = (of.name, &of.size);
        let of_cluster = self.cluster.as_ref();
        let of_cluster = of_cluster.map_or(String::new(), |name| format!(" of {name}"));
        writeln!(
            out,
            "{}, {}: {} subtasks in {} tasks on {} nodes{of_cluster}{}\n",
            styled(STRONG, format!("{name} {size}")),
            styled(STRONG, &self.policy),
            of.subtasks,
            of.tasks,
            self.nodes.len(),
            origin(self.simulated)
        )?;
        let origin = origin(self.simulated);
        if let Some(gflops) = self.gflops {
            let rate = styled(MAIN, Count(gflops * 1e9, "flop/s"));
            line(out, "Rate", format!("{rate}{origin}"))?;
        }
        line(out, "Time", format!("{}{origin}", Seconds(self.seconds)))?;
        if let Some(steps) = &self.steps {
            let reached = match steps.reached {
                true => "reached",
                false => "not reached",
            };
            let (done, most) = (steps.done, steps.most);
            let of = format!(
                "{done} of {most}, tolerance {:e} {reached}",
                steps.tolerance
            );
            line(out, "Steps", of)?;
        }
        if let Some(requests) = &self.requests {
            let (asked, brought) = (requests.asked, requests.brought);
            line(
                out,
                "Requests",
                format!("{asked}, of which {brought} brought work"),
            )?;
        }
        if let Some(figure) = &self.figure {
            let value = figure
                .value
                .map_or("not finite".to_owned(), |value| format!("{value:e}"));
            line(out, figure.title, value)?;
        }
        if let Some(verification) = &self.verification {
            let right = match verification.right {
                true => styled(MAIN, "right"),
                false => styled(ALARM, format!("WRONG in {} numbers", verification.wrong)),
            };
            let compared = format!("{right}, {} numbers compared", verification.numbers);
            line(out, "Result", compared)?;
            if let (Some(residual), Some(growth)) = (verification.residual, verification.growth) {
                let figures = format!("{residual:.2e} of n |A| u, growth {growth:.3}");
                line(out, "Residual", figures)?;
            }
        }
        writeln!(out)?;
        let mut table = table::plain(&HEADER, |column| column > 1);
        for (rank, node) in self.nodes.iter().enumerate() {
            table.add_row(cells(rank, node));
        }
        writeln!(out, "{}\n", table.trim_fmt())?;
        for (rank, node) in self.nodes.iter().enumerate() {
            if node.lost {
                writeln!(
                    out,
                    "{} node {rank} ({}) was lost",
                    styled(ALARM, "!"),
                    node.name
                )?;
            }
        }
        if self.restarts > 0 {
            let again = format!("the tasks began anew {} times", self.restarts);
            writeln!(out, "{} {again}", styled(ALARM, "!"))?;
        }
        notes(out, &self.notes)
    }
}

fn cells(rank: usize, node: &ClusterNode) -> Vec<String> {
    let devices = node.devices.iter();
    let devices: Vec<String> = devices
        .map(|device| format!("{} {}", device.name, styled(FAINT, device.subtasks)))
        .collect();
    vec![
        format!("{rank} {}", node.name),
        devices.join(", "),
        node.subtasks.to_string(),
        node.copied.to_string(),
        node.given_back.to_string(),
        Seconds(node.busy_seconds).to_string(),
        Seconds(node.idle_seconds).to_string(),
        Bytes(node.received_bytes).to_string(),
        Bytes(node.sent_bytes).to_string(),
    ]
}

//! The report as text.

use std::fmt::{self, Write};

use super::super::style::{FAINT, MAIN, STRONG, notes, origin, styled, written};
use super::super::table;
use super::{BusiestPart, ScalingReport, ScalingRun};
use crate::quantity::{Bytes, Count, Percent, Seconds};

const HEADER: [&str; 8] = [
    "Nodes",
    "Time",
    "Rate",
    "Speed-up",
    "Efficiency",
    "Sent",
    "Idle",
    "Busiest",
];

impl ScalingReport {
    /// The report as text, with ANSI styles.
    pub fn render(&self) -> String {
        written(|out| self.write(out))
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let of = &self.workload;
        writeln!(
            out,
            "{}, {}: {} subtasks in {} tasks on nodes of {}{}\n",
            styled(STRONG, format!("{} {}", of.name, of.size)),
            styled(STRONG, &self.policy),
            of.subtasks,
            of.tasks,
            styled(STRONG, &self.cluster),
            origin(self.simulated)
        )?;
        let mut table = table::plain(&HEADER, |column| column + 1 < HEADER.len());
        for run in &self.runs {
            table.add_row(cells(run));
        }
        writeln!(out, "{}\n", table.trim_fmt())?;
        let from = &self.reference;
        let seconds = Seconds(from.seconds);
        writeln!(out, "Speed-ups count from {}, {seconds}.\n", from.what)?;
        notes(out, &self.notes)?;
        let what = "Simulated with the decisions of real runs; nothing was computed.";
        writeln!(out, "{}", styled(FAINT, what))
    }
}

fn cells(run: &ScalingRun) -> Vec<String> {
    vec![
        run.nodes.to_string(),
        styled(MAIN, Seconds(run.seconds)),
        Count(run.gflops * 1e9, "flop/s").to_string(),
        format!("{:.2}", run.speedup),
        Percent(run.efficiency).to_string(),
        Bytes(run.sent_bytes).to_string(),
        Percent(run.idle).to_string(),
        run.busiest
            .as_ref()
            .map_or_else(String::new, BusiestPart::in_words),
    ]
}

impl BusiestPart {
    /// What it is and for which part of the run it was busy.
    pub fn in_words(&self) -> String {
        let device = self.device.as_deref().unwrap_or_default();
        let part = match self.kind {
            "device" => device.to_owned(),
            "device_link" => format!("link of {device}"),
            "link_out" => "link out".to_owned(),
            "link_in" => "link in".to_owned(),
            kind => kind.to_owned(),
        };
        let share = Percent(self.share);
        match self.node {
            Some(node) => format!("node {node}, {part} {share}"),
            None => format!("{part} {share}"),
        }
    }
}

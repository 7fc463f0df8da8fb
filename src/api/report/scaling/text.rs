//! The report as text.

use std::fmt::{self, Write};

use anstyle::Style;

use super::super::run::Parameters;
use super::super::style::{FAINT, MAIN, STRONG, notes, origin, styled, written};
use super::{BusiestPart, ScalingContext, ScalingRun};
use crate::quantity::{Bytes, Count, Percent, Seconds};

impl ScalingContext {
    /// What is said before the first run, with ANSI styles.
    pub fn heading(&self) -> String {
        written(|out| self.write_heading(out))
    }

    fn write_heading(&self, out: &mut String) -> fmt::Result {
        if let Parameters::Tasks(of) = &self.workload.parameters {
            writeln!(
                out,
                "{}, {}: {} on nodes of {}{}",
                styled(STRONG, &self.workload.title),
                styled(STRONG, &self.policy),
                of.work(),
                styled(STRONG, &self.cluster),
                origin(self.simulated)
            )?;
        }
        let from = &self.reference;
        let seconds = Seconds(from.seconds);
        writeln!(out, "Speed-ups count from {}, {seconds}.\n", from.what)?;
        let names = [
            "Nodes",
            "Tile",
            "Time",
            "Rate",
            "Speed-up",
            "Efficiency",
            "Sent",
            "Idle",
        ];
        writeln!(
            out,
            "{}  Busiest",
            aligned(names.map(str::to_owned), Style::new())
        )
    }

    /// What is said after the last run, with ANSI styles.
    pub fn ending(&self) -> String {
        written(|out| {
            writeln!(out)?;
            notes(out, &self.notes)?;
            let what = "Simulated with the decisions of real runs; nothing was computed.";
            writeln!(out, "{}", styled(FAINT, what))
        })
    }
}

impl ScalingRun {
    /// The run as a line of a table, with ANSI styles. Lines are known one after the other,
    /// so columns have fixed widths.
    pub fn line(&self) -> String {
        let cells = [
            self.nodes.to_string(),
            self.tile
                .map_or_else(|| "-".to_owned(), |tile| tile.to_string()),
            Seconds(self.seconds).to_string(),
            Count(self.gflops * 1e9, "flop/s").to_string(),
            format!("{:.2}", self.speedup),
            Percent(self.efficiency).to_string(),
            Bytes(self.sent_bytes).to_string(),
            Percent(self.idle).to_string(),
        ];
        let busiest = self.busiest.as_ref();
        let busiest = busiest.map_or_else(String::new, BusiestPart::in_words);
        let line = format!("{}  {busiest}", aligned(cells, MAIN));
        format!("{}\n", line.trim_end())
    }
}

/// Columns to the right of so many characters each; the third one in a style.
fn aligned(cells: [String; 8], style: Style) -> String {
    const WIDTHS: [usize; 8] = [7, 9, 9, 13, 9, 11, 10, 7];
    let columns = cells.into_iter().zip(WIDTHS).enumerate();
    let columns = columns.map(|(place, (cell, width))| {
        let cell = format!("{cell:>width$}");
        match place {
            2 => styled(style, cell),
            _ => cell,
        }
    });
    columns.collect::<Vec<_>>().join(" ")
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

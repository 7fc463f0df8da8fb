//! The report as text.

use std::fmt::{self, Write};

use super::super::style::{STRONG, cell, ending, origin, styled, written};
use super::super::table;
use super::{TaskReport, TaskRow};
use crate::quantity::{Bytes, Count, Percent, Seconds};

const HEADER: [&str; 11] = [
    "n", "Tasks", "Policy", "Time", "Rate", "Bound", "Of bound", "Loaded", "Back", "Evicted",
    "Deciding",
];

impl TaskReport {
    /// The report as text, with ANSI styles.
    pub fn render(&self) -> String {
        written(|out| self.write(out))
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let order = self.rows.first().map_or("", |row| row.order);
        let tile = (self.tile).map_or(String::new(), |tile| format!(", tiles of {tile}"));
        let memory = self.gpu_memory_bytes;
        let memory = memory.map_or(String::new(), |bytes| {
            format!(", {} of each one's memory", Bytes(bytes))
        });
        writeln!(
            out,
            "{}{tile}, {order} order, runs of each policy: {}, in turns\non {}: {}{memory}{}\n",
            styled(STRONG, self.set),
            self.repeats,
            styled(STRONG, &self.machine),
            self.devices.join(", "),
            origin(self.simulated),
        )?;
        let mut table = table::plain(&HEADER, |column| column != 2);
        let mut last = None;
        for row in &self.rows {
            table.add_row(cells(row, last != Some(row.n)));
            last = Some(row.n);
        }
        writeln!(out, "{}", table.trim_fmt())?;
        if self.simulated {
            writeln!(out, "\nTime and rates are simulated, Deciding is real.")?;
        }
        ending(out, self.interrupted, &self.notes)
    }
}

/// The cells of a row. Only the first one of a size has the size.
fn cells(row: &TaskRow, first: bool) -> Vec<String> {
    let of_size = |figure: usize| match first {
        true => figure.to_string(),
        false => String::new(),
    };
    let rate = |gflops: f64| Count(gflops * 1e9, "flop/s");
    let bound = row.bound_gflops;
    vec![
        of_size(row.n as usize),
        of_size(row.tasks),
        row.policy.clone(),
        Seconds(row.seconds).to_string(),
        rate(row.gflops).to_string(),
        cell(bound, rate),
        cell(bound, |bound| Percent(row.gflops / bound)),
        Bytes(row.loaded_bytes).to_string(),
        Bytes(row.written_back_bytes).to_string(),
        row.evictions.to_string(),
        Seconds(row.deciding_seconds).to_string(),
    ]
}

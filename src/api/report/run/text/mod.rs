//! The report of a run as text. What all kinds of run have is written here.

use std::fmt::{self, Write};

use super::super::style::{
    ALARM, FAINT, MAIN, STRONG, cell, line, note, notes, origin, styled, written,
};
use super::super::table;
use super::{Details, Lost, Machine, Report, Verification};
use crate::quantity::{Count, Seconds};
use crate::runtime::Comparison;
use crate::runtime::error::is_unfit;

mod corun;
mod dense;
mod graph;
mod nodes;

impl Report {
    /// The report as text, with ANSI styles.
    pub fn render(&self) -> String {
        written(|out| {
            match &self.details {
                Details::CoRun(own) => corun::write(self, own, out)?,
                Details::Graph(own) => graph::write(self, own, out)?,
                Details::Dense(own) => dense::write(self, own, out)?,
                Details::Nodes(own) => nodes::write(self, own, out)?,
            }
            write_implementations(&self.machine.implementations, out)?;
            (self.lost.iter()).try_for_each(|of| writeln!(out, "{}", lost(self, of)))?;
            if self.interrupted {
                let after = match &self.details {
                    Details::CoRun(own) => {
                        format!(" after {} of {} steps,", own.done(), self.workload.steps())
                    }
                    _ => String::new(),
                };
                writeln!(out, "{}{after} on request", styled(ALARM, "Interrupted"))?;
            }
            notes(out, &self.notes)
        })
    }
}

/// Writes where a run was, and a detail of it.
fn place(report: &Report, detail: &str, out: &mut String) -> fmt::Result {
    let machine = &report.machine;
    writeln!(
        out,
        "on {}{}: {}{detail}\n",
        styled(STRONG, &machine.name),
        origin(machine.simulated),
        styled(FAINT, in_words(machine))
    )
}

/// The names and models of a machine's devices.
fn in_words(machine: &Machine) -> String {
    let devices = machine.devices.iter();
    let devices: Vec<String> = devices
        .map(|device| format!("{} ({})", device.name, device.model))
        .collect();
    devices.join(", ")
}

/// Writes the throughput under a name, if it is known.
fn rate(report: &Report, name: &str, out: &mut String) -> fmt::Result {
    let Some(rate) = &report.throughput else {
        return Ok(());
    };
    let count = styled(MAIN, Count(rate.value, rate.each()));
    line(
        out,
        name,
        format!("{count}{}", origin(report.machine.simulated)),
    )
}

/// How far the times of several runs differ.
fn spread(runs: &[f64]) -> String {
    match runs {
        [] | [_] => String::new(),
        runs => {
            let least = runs.iter().copied().fold(f64::INFINITY, f64::min);
            let most = runs.iter().copied().fold(0.0, f64::max);
            let (least, most) = (Seconds(least), Seconds(most));
            format!(", median of {}, {least} to {most}", runs.len())
        }
    }
}

/// Writes the check of the result, if there was one.
fn verified(report: &Report, out: &mut String) -> fmt::Result {
    let Some(of) = &report.verification else {
        return Ok(());
    };
    line(out, "Verified", verdict(of))?;
    if let (Some(residual), Some(growth)) = (of.residual, of.growth) {
        let figures = format!("{residual:.2e} of n |A| u, growth {growth:.3}");
        line(out, "Residual", figures)?;
    }
    Ok(())
}

fn verdict(of: &Verification) -> String {
    let right = match (of.right, of.wrong) {
        (true, _) => styled(MAIN, "right"),
        (false, None) => styled(ALARM, "WRONG"),
        (false, Some(wrong)) => styled(ALARM, format!("WRONG in {wrong} numbers")),
    };
    let error = match (of.numbers, of.error, of.tolerance) {
        (Some(numbers), ..) => format!("{numbers} numbers compared"),
        (_, Some(error), Some(allowed)) => format!("error {error:.2e}, allowed {allowed:.2e}"),
        (_, None, Some(_)) => "error not finite".to_owned(),
        (_, Some(0.0), None) => "bit for bit".to_owned(),
        (_, Some(error), None) => format!("greatest error {error:.2e}"),
        (_, None, None) => return right,
    };
    format!("{right}, {error}")
}

/// A loss, in words.
fn lost(report: &Report, of: &Lost) -> String {
    if let (Some(device), Some(why)) = (&of.device, &of.why)
        && is_unfit(why)
    {
        return format!("{} {device}: {why}", styled(ALARM, "Left out"));
    }
    let mut words = styled(ALARM, "Lost");
    if let Some(device) = &of.device {
        let _ = write!(words, " {device}");
    }
    if let Some(rank) = of.node {
        let name = report.nodes.get(rank).map_or("", |node| &node.name);
        let _ = write!(words, " node {rank} ({name})");
    }
    if let Some(step) = of.step {
        let _ = write!(words, " in step {step}");
    }
    if let Some(why) = &of.why {
        let what = match &report.details {
            Details::CoRun(_) => "steps",
            Details::Graph(_) => "components",
            Details::Dense(_) | Details::Nodes(_) => "tasks",
        };
        let _ = write!(words, ": {why}; {what} computed again: {}", of.repeated);
    }
    match (of.back, of.back_step) {
        (_, Some(step)) => words + &format!("; back in step {step}"),
        (true, None) => words + "; it is back",
        (false, None) => words,
    }
}

const HEADER: [&str; 7] = [
    "Device",
    "Codelet",
    "Sizes",
    "Served by",
    "Ours",
    "Library's",
    "Library",
];

/// Writes a table of those with a library, and why others have none.
fn write_implementations(all: &[Comparison], out: &mut String) -> fmt::Result {
    let mut table = table::plain(&HEADER, |column| column == 4 || column == 5);
    for of in all.iter().filter(|of| of.library.is_some()) {
        let sizes: Vec<String> = of.sizes.iter().map(u64::to_string).collect();
        table.add_row([
            of.device.clone(),
            of.codelet.clone(),
            sizes.join("x"),
            cell(of.serves, |serves| serves),
            cell(of.own_seconds, Seconds),
            cell(of.library_seconds, Seconds),
            of.library.clone().unwrap_or_default(),
        ]);
    }
    if table.row_iter().next().is_some() {
        writeln!(out, "{}\n", table.trim_fmt())?;
    }
    let mut reasons: Vec<&String> = all.iter().filter_map(|of| of.refusal.as_ref()).collect();
    reasons.sort();
    reasons.dedup();
    reasons
        .iter()
        .try_for_each(|why| note(out, format!("our kernels serve: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Implementation;

    #[test]
    fn a_reason_is_reported_once() {
        let of = |codelet: &str, library: Option<&str>, refusal: Option<&str>| Comparison {
            device: "cuda0".to_owned(),
            codelet: codelet.to_owned(),
            sizes: vec![512, 64],
            library: library.map(str::to_owned),
            own_seconds: library.map(|_| 0.002),
            library_seconds: library.map(|_| 0.001),
            serves: Some(Implementation::Library),
            refusal: refusal.map(str::to_owned),
        };
        let all = [
            of("gemm-tile-f32", Some("cublas-130002"), None),
            of(
                "potrf-tile-f32",
                None,
                Some("libcusolver.so.12 is not found"),
            ),
            of("lu-panel-f32", None, Some("libcusolver.so.12 is not found")),
        ];
        let mut text = String::new();
        write_implementations(&all, &mut text).unwrap();
        assert_eq!(text.matches("is not found").count(), 1, "{text}");
        let mut lines = text.lines().filter(|line| line.contains("gemm-tile-f32"));
        let row: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
        assert_eq!(row[..4], ["cuda0", "gemm-tile-f32", "512x64", "library"]);
        assert!(!text.contains("potrf"), "{text}");
        let mut nothing = String::new();
        write_implementations(&[], &mut nothing).unwrap();
        assert_eq!(nothing, "");
    }
}

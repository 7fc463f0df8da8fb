//! The report of a run as text. What all kinds of run have is written here.

mod corun;
mod dense;
mod graph;
mod implementations;
mod nodes;

use std::fmt::{self, Write};

use super::super::style::{ALARM, FAINT, MAIN, STRONG, line, notes, origin, styled, written};
use super::{Details, Lost, Machine, Report, Verification};
use crate::quantity::{Count, Seconds};
use crate::runtime::error::is_unfit;

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
            implementations::write(&self.machine.implementations, out)?;
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

//! The report of a program's run as text.

use std::fmt::{self, Write};

use super::{Division, ExecReport, Kernel, Process, Queue};
use crate::quantity::{Bytes, Seconds};
use crate::report::style::{STRONG, line, notes, styled, written};
use crate::report::table;

/// Kernels that are listed at most: those with the most launches.
const KERNELS: usize = 20;
/// Queues that are listed at most.
const QUEUES: usize = 32;

/// The report as text.
pub fn render(report: &ExecReport) -> String {
    written(|out| write(out, report))
}

fn write(out: &mut String, report: &ExecReport) -> fmt::Result {
    let ended = match (report.status, report.signal) {
        (_, Some(signal)) => format!("signal {signal}"),
        (status, None) => format!("status {}", status.unwrap_or_default()),
    };
    let settings = &report.settings;
    let map: Vec<String> = settings.map.iter().map(u8::to_string).collect();
    let mut how = match map.is_empty() {
        true => settings.policy.clone(),
        false => format!("map {}", map.join(",")),
    };
    if settings.exact {
        how += ", exact";
    }
    let heading = format!("pdawl exec {}, {how}", report.command.join(" "));
    writeln!(out, "\n{}", styled(STRONG, heading))?;
    line(out, "Time", format!("{}, {ended}", Seconds(report.seconds)))?;
    for process in &report.processes {
        if report.processes.len() > 1 {
            writeln!(out, "\nprocess {} {}", process.pid, process.executable)?;
        }
        write_process(out, process)?;
    }
    notes(out, &report.notes)
}

fn write_process(out: &mut String, process: &Process) -> fmt::Result {
    let own = &process.own;
    let time = Seconds(own.seconds);
    let waited = Seconds(own.waited_seconds);
    let commands = own.commands;
    line(
        out,
        "Own time",
        format!("{time} for {commands} commands, {waited} in waits for samples"),
    )?;
    for moved in &process.moved {
        let (from, to, copies) = (&moved.from, &moved.to, moved.copies);
        line(
            out,
            "Moved",
            format!("{} {from} to {to} in {copies} copies", Bytes(moved.bytes)),
        )?;
    }
    if !process.queues.is_empty() {
        writeln!(out)?;
        queues(out, &process.queues)?;
    }
    if !process.kernels.is_empty() {
        writeln!(out)?;
        kernels(out, &process.kernels)?;
    }
    Ok(())
}

fn queues(out: &mut String, queues: &[Queue]) -> fmt::Result {
    let header = [
        "Queue",
        "Device",
        "Commands",
        "Kernels",
        "Epochs",
        "Time",
        "Predicted",
        "Measured",
    ];
    let mut table = table::plain(&header, |column| column != 1);
    for queue in queues.iter().take(QUEUES) {
        for device in &queue.devices {
            let predicted = |seconds: f64| match device.predicted_epochs {
                0 => String::new(),
                _ => Seconds(seconds).to_string(),
            };
            table.add_row(vec![
                queue.number.to_string(),
                device.name.clone(),
                device.commands.to_string(),
                device.launches.to_string(),
                device.epochs.to_string(),
                Seconds(device.measured_seconds).to_string(),
                predicted(device.predicted_seconds),
                predicted(device.predicted_measured_seconds),
            ]);
        }
    }
    writeln!(out, "{table}")?;
    omitted(out, queues.len(), QUEUES, "queues")
}

fn kernels(out: &mut String, kernels: &[Kernel]) -> fmt::Result {
    let launches = |kernel: &&Kernel| {
        kernel
            .devices
            .iter()
            .map(|device| device.launches)
            .sum::<u64>()
    };
    let mut most: Vec<&Kernel> = kernels.iter().collect();
    most.sort_by_key(|kernel| std::cmp::Reverse(launches(kernel)));
    let header = ["Kernel", "Device", "Launches", "Samples", "Each"];
    let mut table = table::plain(&header, |column| column > 1);
    for kernel in most.iter().take(KERNELS) {
        for device in &kernel.devices {
            let seconds = device.seconds.map(|seconds| Seconds(seconds).to_string());
            table.add_row(vec![
                kernel.name.clone(),
                device.name.clone(),
                device.launches.to_string(),
                device.samples.to_string(),
                seconds.unwrap_or_else(|| "unknown".to_owned()),
            ]);
        }
    }
    writeln!(out, "{table}")?;
    omitted(out, kernels.len(), KERNELS, "kernels")?;
    for kernel in most.iter().take(KERNELS) {
        for division in &kernel.division {
            writeln!(out, "  {}: {}", kernel.name, divided(division))?;
        }
    }
    Ok(())
}

/// How launches of a kernel were divided.
fn divided(division: &Division) -> String {
    let reason = division.reason.as_deref().unwrap_or("unknown");
    if division.divided == 0 {
        return format!("not divided: {reason}");
    }
    let axis = division.axis.unwrap_or_default();
    let mut text = format!("{} divided along {axis}", division.divided);
    for share in &division.shares {
        text += &format!(", {:.0} % {}", share.share * 100.0, share.device);
    }
    if division.reason.is_some() {
        text += &format!("; {}: {reason}", division.verdict);
    }
    if division.clashes > 0 {
        text += &format!("; {} clashed", division.clashes);
    }
    text
}

/// Says how many of `all` are not listed.
fn omitted(out: &mut String, all: usize, listed: usize, what: &str) -> fmt::Result {
    match all.checked_sub(listed) {
        Some(more @ 1..) => writeln!(out, "  {more} more {what}: the JSON report has them"),
        _ => Ok(()),
    }
}

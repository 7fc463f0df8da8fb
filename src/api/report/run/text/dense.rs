//! A product, a factorisation or a set of tasks as text.

use std::fmt::{self, Write};

use super::super::super::style::{STRONG, cell, line, origin, styled};
use super::super::super::table;
use super::super::graph::Dense;
use super::super::{DevicePart, Parameters, Report};
use super::{place, rate, spread, verified};
use crate::quantity::{Bytes, Percent, Seconds};

const HEADER: [&str; 9] = [
    "Device", "Tasks", "Share", "Finished", "Busy", "Loaded", "Back", "Peer", "Evicted",
];

/// Writes all but what every run has.
pub fn write(report: &Report, own: &Dense, out: &mut String) -> fmt::Result {
    let (tasks, tile) = match &report.workload.parameters {
        Parameters::Dense(of) => (of.tasks, Some(of.tile)),
        Parameters::TaskSet(of) => (of.tasks as u64, of.tile.map(u64::from)),
        Parameters::Recording(of) => (of.tasks as u64, None),
        _ => (0, None),
    };
    let tile = tile.map_or(String::new(), |tile| format!(" on tiles of {tile}"));
    let policy = styled(STRONG, &report.policy);
    let title = styled(STRONG, &report.workload.title);
    writeln!(out, "{title}, {policy}: {tasks} tasks{tile}")?;
    let memory = own.gpu_memory_bytes.map_or(String::new(), |bytes| {
        format!(", {} of each GPU's memory", Bytes(bytes))
    });
    place(report, &memory, out)?;
    rate(report, "Rate", out)?;
    let (seconds, origin) = (Seconds(report.seconds), origin(report.machine.simulated));
    let spread = spread(&report.runs);
    line(out, "Time", format!("{seconds}{origin}{spread}"))?;
    if let Parameters::Recording(of) = &report.workload.parameters {
        let (recorded, part) = (of.recorded_seconds, of.recorded_seconds / report.seconds);
        let recorded = format!(
            "{} by StarPU, {} of the time",
            Seconds(recorded),
            Percent(part)
        );
        line(out, "Recorded", recorded)?;
    }
    if let Some(least) = own.least_seconds {
        let part = Percent(least / report.seconds);
        line(
            out,
            "Bound",
            format!("{}{origin}, {part} of the time", Seconds(least)),
        )?;
    }
    let setup = Seconds(report.setup_seconds.unwrap_or(0.0));
    let deciding = Seconds(own.deciding_seconds);
    line(
        out,
        "Real time",
        format!("setup {setup}, deciding {deciding}"),
    )?;
    verified(report, out)?;
    writeln!(out)?;
    let mut table = table::plain(&HEADER, |column| column > 0);
    for device in &report.devices {
        table.add_row(cells(device));
    }
    writeln!(out, "{}\n", table.trim_fmt())
}

fn cells(device: &DevicePart) -> Vec<String> {
    vec![
        device.name.clone(),
        device.units.to_string(),
        Percent(device.share).to_string(),
        cell(device.finished_seconds, Seconds),
        cell(device.busy_seconds, Seconds),
        cell(device.bytes_h2d, Bytes),
        cell(device.bytes_d2h, Bytes),
        cell(device.bytes_peer, Bytes),
        cell(device.evictions, |evictions| evictions),
    ]
}

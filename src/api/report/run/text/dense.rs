//! A product or a factorisation as text.

use std::fmt::{self, Write};

use super::super::super::style::{STRONG, cell, line, origin, styled};
use super::super::super::table;
use super::super::dense::Dense;
use super::super::{DevicePart, Parameters, Report};
use super::{place, rate, spread, verified};
use crate::quantity::{Bytes, Percent, Seconds};

const HEADER: [&str; 9] = [
    "Device", "Tasks", "Share", "Finished", "Busy", "Loaded", "Back", "Peer", "Evicted",
];

/// Writes all but what every run has.
pub fn write(report: &Report, own: &Dense, out: &mut String) -> fmt::Result {
    if let Parameters::Dense(of) = &report.workload.parameters {
        writeln!(
            out,
            "{}, {}: {} tasks on tiles of {}",
            styled(STRONG, &report.workload.title),
            styled(STRONG, &report.policy),
            of.tasks,
            of.tile
        )?;
    }
    let memory = own.gpu_memory_bytes.map_or(String::new(), |bytes| {
        format!(", {} of each GPU's memory", Bytes(bytes))
    });
    place(report, &memory, out)?;
    rate(report, "Rate", out)?;
    let (seconds, origin) = (Seconds(report.seconds), origin(report.machine.simulated));
    let spread = spread(&report.runs);
    line(out, "Time", format!("{seconds}{origin}{spread}"))?;
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

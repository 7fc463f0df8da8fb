//! Runs of a graph as text.

use std::fmt::{self, Write};

use super::super::super::style::{MAIN, STRONG, cell, line, origin, styled};
use super::super::super::table;
use super::super::Report;
use super::super::graph::{Graph, MeasuredConfiguration};
use super::{place, spread, verified};
use crate::quantity::{Bytes, Percent, Seconds};

/// How many of the best configurations of a search are shown.
const SHOWN: usize = 5;

/// Writes all but what every run has.
pub fn write(report: &Report, own: &Graph, out: &mut String) -> fmt::Result {
    writeln!(
        out,
        "{}, {}: {} kernels in {} components, {} levels",
        styled(STRONG, &report.workload.title),
        styled(STRONG, &report.policy),
        own.kernels,
        own.components,
        own.levels
    )?;
    place(report, "", out)?;
    let time = styled(MAIN, Seconds(report.seconds));
    let time = format!(
        "{time}{}{}",
        origin(report.machine.simulated),
        spread(&report.runs)
    );
    let setup = Seconds(report.setup_seconds.unwrap_or(0.0));
    line(out, "Time", format!("{time}; setup {setup}"))?;
    let (host, driver) = (own.host_seconds_per_kernel, own.driver_seconds_per_kernel);
    let (host, driver) = (Seconds(host), Seconds(driver));
    line(
        out,
        "Host",
        format!("{host} a kernel, and {driver} in drivers"),
    )?;
    if let Some(found) = &own.found {
        line(out, "Found", describe(found))?;
    }
    verified(report, out)?;
    writeln!(out)?;
    devices(report, out)?;
    tried(own, out)
}

fn describe(tried: &MeasuredConfiguration) -> String {
    format!(
        "q_gpu={} q_cpu={} h_cpu={} with components over {}: {}",
        tried.configuration.q_gpu,
        tried.configuration.q_cpu,
        tried.configuration.h_cpu,
        tried.configuration.width,
        Seconds(tried.seconds)
    )
}

fn devices(report: &Report, out: &mut String) -> fmt::Result {
    let header = [
        "Device",
        "Components",
        "Kernels",
        "Share",
        "Queues",
        "H2D",
        "D2H",
        "Busy",
    ];
    let mut table = table::plain(&header, |column| column > 0);
    for device in &report.devices {
        table.add_row(vec![
            device.name.clone(),
            device.units.to_string(),
            cell(device.kernels, |kernels| kernels),
            Percent(device.share).to_string(),
            cell(device.queues, |queues| queues),
            cell(device.bytes_h2d, Bytes),
            cell(device.bytes_d2h, Bytes),
            cell(device.busy_seconds, Seconds),
        ]);
    }
    writeln!(out, "{}\n", table.trim_fmt())
}

fn tried(own: &Graph, out: &mut String) -> fmt::Result {
    if own.tried.is_empty() {
        return Ok(());
    }
    let mut best: Vec<&MeasuredConfiguration> = own.tried.iter().collect();
    best.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    writeln!(out, "The best of {} configurations:", best.len())?;
    for tried in best.iter().take(SHOWN) {
        writeln!(out, "  {}", describe(tried))?;
    }
    writeln!(out)
}

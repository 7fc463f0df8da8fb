//! The report of runs of a graph as text.

use std::fmt::{self, Write};

use super::{GraphReport, MeasuredConfiguration};
use crate::quantity::{Bytes, Percent, Seconds};
use crate::report::style::{ALARM, FAINT, MAIN, STRONG, line, notes, origin, styled, written};
use crate::report::table;

/// How many of the best configurations of a search are shown.
const SHOWN: usize = 5;

/// Writes the report, with ANSI styles.
pub fn render(report: &GraphReport) -> String {
    written(|out| write_report(report, out))
}

fn write_report(report: &GraphReport, out: &mut String) -> fmt::Result {
    heading(report, out)?;
    figures(report, out)?;
    devices(report, out)?;
    tried(report, out)?;
    for lost in &report.lost {
        writeln!(
            out,
            "{} {} was lost: {}; {} components ran again{}",
            styled(ALARM, "!"),
            lost.device,
            lost.why,
            lost.repeated.len(),
            if lost.back { "; it is back" } else { "" }
        )?;
    }
    if report.interrupted {
        writeln!(out, "{} interrupted", styled(ALARM, "!"))?;
    }
    notes(out, &report.notes)
}

fn heading(report: &GraphReport, out: &mut String) -> fmt::Result {
    let graph = &report.graph;
    writeln!(
        out,
        "{}, {}: {} kernels in {} components, {} levels",
        styled(STRONG, &graph.title),
        styled(STRONG, report.policy),
        graph.kernels,
        graph.components,
        graph.levels
    )?;
    let devices = report.machine.devices.iter();
    let devices: Vec<String> = devices
        .map(|d| format!("{} ({})", d.name, d.model))
        .collect();
    writeln!(
        out,
        "on {}{}: {}\n",
        styled(STRONG, &report.machine.name),
        origin(report.machine.simulated),
        styled(FAINT, devices.join(", "))
    )
}

fn figures(report: &GraphReport, out: &mut String) -> fmt::Result {
    let spread = match &report.runs[..] {
        [] | [_] => String::new(),
        runs => {
            let least = runs.iter().copied().fold(f64::INFINITY, f64::min);
            let most = runs.iter().copied().fold(0.0, f64::max);
            let (least, most) = (Seconds(least), Seconds(most));
            format!(" median of {}, {least} to {most}", runs.len())
        }
    };
    let time = styled(MAIN, Seconds(report.seconds));
    let origin = origin(report.machine.simulated);
    line(
        out,
        "Time",
        format!(
            "{time}{origin}{spread}; setup {}",
            Seconds(report.setup_seconds)
        ),
    )?;
    line(
        out,
        "Host",
        format!(
            "{} a kernel, and {} in drivers",
            Seconds(report.host_seconds_per_kernel),
            Seconds(report.driver_seconds_per_kernel)
        ),
    )?;
    if let Some(found) = &report.found {
        line(out, "Found", describe(found))?;
    }
    if let Some(right) = report.verified {
        let error = report
            .max_error
            .map(|e| format!(", greatest error {e:.2e}"));
        let verdict = match right {
            true => styled(MAIN, "right"),
            false => styled(ALARM, "WRONG"),
        };
        line(
            out,
            "Result",
            format!("{verdict}{}", error.unwrap_or_default()),
        )?;
    }
    writeln!(out)
}

fn describe(tried: &MeasuredConfiguration) -> String {
    format!(
        "q_gpu={} q_cpu={} h_cpu={} with components over {}: {}",
        tried.q_gpu,
        tried.q_cpu,
        tried.h_cpu,
        tried.width,
        Seconds(tried.seconds)
    )
}

fn devices(report: &GraphReport, out: &mut String) -> fmt::Result {
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
        let busy = device.busy_seconds;
        table.add_row(vec![
            device.name.clone(),
            device.components.to_string(),
            device.kernels.to_string(),
            Percent(device.share).to_string(),
            device.queues.to_string(),
            Bytes(device.bytes_h2d).to_string(),
            Bytes(device.bytes_d2h).to_string(),
            busy.map_or_else(|| "-".into(), |busy| Seconds(busy).to_string()),
        ]);
    }
    writeln!(out, "{}\n", table.trim_fmt())
}

fn tried(report: &GraphReport, out: &mut String) -> fmt::Result {
    if report.tried.is_empty() {
        return Ok(());
    }
    let mut best: Vec<&MeasuredConfiguration> = report.tried.iter().collect();
    best.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    writeln!(out, "The best of {} configurations:", best.len())?;
    for tried in best.iter().take(SHOWN) {
        writeln!(out, "  {}", describe(tried))?;
    }
    writeln!(out)
}

//! Tasks over spaces as text.

use std::fmt::{self, Write};

use super::super::super::style::{ALARM, STRONG, line, origin, styled};
use super::super::super::table;
use super::super::nodes::{BusiestPart, Node, Tasks};
use super::super::{Parameters, Report};
use super::{rate, verified};
use crate::quantity::{Bytes, Percent, Seconds};

const HEADER: [&str; 9] = [
    "Node",
    "Devices",
    "Subtasks",
    "Copied",
    "Given back",
    "Busy",
    "Idle",
    "Received",
    "Sent",
];

/// Writes all but what every run has.
pub fn write(report: &Report, own: &Tasks, out: &mut String) -> fmt::Result {
    let simulated = report.machine.simulated;
    if let Parameters::Tasks(of) = &report.workload.parameters {
        let machine = match simulated {
            true => format!(" of {}", report.machine.name),
            false => String::new(),
        };
        writeln!(
            out,
            "{}, {}: {} on {} nodes{machine}{}\n",
            styled(STRONG, &report.workload.title),
            styled(STRONG, &report.policy),
            of.work(),
            report.nodes.len(),
            origin(simulated)
        )?;
    }
    figures(report, own, out)?;
    let mut table = table::plain(&HEADER, |column| column > 1);
    for (rank, node) in report.nodes.iter().enumerate() {
        table.add_row(cells(report, rank, node));
    }
    writeln!(out, "{}\n", table.trim_fmt())?;
    if own.restarts > 0 {
        let again = format!("the tasks began anew {} times", own.restarts);
        writeln!(out, "{} {again}", styled(ALARM, "!"))?;
    }
    Ok(())
}

fn figures(report: &Report, own: &Tasks, out: &mut String) -> fmt::Result {
    rate(report, "Rate", out)?;
    let origin = origin(report.machine.simulated);
    line(out, "Time", format!("{}{origin}", Seconds(report.seconds)))?;
    if let Some(steps) = &own.steps {
        let reached = match steps.reached {
            true => "reached",
            false => "not reached",
        };
        let (done, most) = (steps.done, steps.most);
        let tolerance = format!("tolerance {:e} {reached}", steps.tolerance);
        line(out, "Steps", format!("{done} of {most}, {tolerance}"))?;
    }
    if let Some(requests) = &own.requests {
        let (asked, brought) = (requests.asked, requests.brought);
        let requests = format!("{asked}, of which {brought} brought work");
        line(out, "Requests", requests)?;
    }
    if let Some(figure) = &own.figure {
        let value = figure
            .value
            .map_or("not finite".to_owned(), |value| format!("{value:e}"));
        line(out, figure.title, value)?;
    }
    let divided: u64 = report.nodes.iter().map(|node| node.divided).sum();
    if divided > 0 {
        let divided = format!("{divided} subtasks, over several devices of their node");
        line(out, "Divided", divided)?;
    }
    let touched = |of: fn(&Node) -> u64| report.nodes.iter().map(of).sum::<u64>();
    let runs = touched(|node| node.touched_runs);
    if runs > 0 {
        let blocks = touched(|node| node.touched_blocks);
        let bytes = Bytes(touched(|node| node.touched_bytes));
        let touched = format!("{blocks} blocks, {bytes}, for which {runs} runs were given up");
        line(out, "Touched", touched)?;
    }
    if let Some(busiest) = &own.busiest {
        line(out, "Busiest", in_words(busiest))?;
    }
    verified(report, out)?;
    writeln!(out)
}

/// What it is and for which part of the run it was busy.
fn in_words(busiest: &BusiestPart) -> String {
    let device = busiest.device.as_deref().unwrap_or_default();
    let part = match busiest.kind {
        "device" => device.to_owned(),
        "device_link" => format!("link of {device}"),
        "link_out" => "link out".to_owned(),
        "link_in" => "link in".to_owned(),
        kind => kind.to_owned(),
    };
    let share = Percent(busiest.share);
    match busiest.node {
        Some(node) => format!("node {node}, {part} {share}"),
        None => format!("{part} {share}"),
    }
}

fn cells(report: &Report, rank: usize, node: &Node) -> Vec<String> {
    let devices = report.devices.iter().filter(|of| of.node == Some(rank));
    let devices: Vec<String> = devices
        .map(|device| format!("{} {}", device.name, device.units))
        .collect();
    vec![
        format!("{rank} {}", node.name),
        devices.join(", "),
        node.subtasks.to_string(),
        node.copied.to_string(),
        node.given_back.to_string(),
        Seconds(node.busy_seconds).to_string(),
        Seconds(node.idle_seconds).to_string(),
        Bytes(node.received_bytes).to_string(),
        Bytes(node.sent_bytes).to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cluster::simulate::{Busiest, Resource};

    #[test]
    fn the_busiest_part_is_named_in_words() {
        let words = |resource| {
            in_words(
                &Busiest {
                    resource,
                    share: 0.5,
                }
                .into(),
            )
        };
        let link = words(Resource::DeviceLink(3, "gpu0".to_owned()));
        assert_eq!(link, "node 3, link of gpu0 50.0 %");
        assert!(words(Resource::Switch).starts_with("switch"));
    }
}

//! What a chart shows of a report beside the spans: bounds, and a table of the devices.

use serde::Deserialize;

use super::{Bounds, Details, DevicePart, Lost, Parameters, Report};
use crate::quantity::{Bytes, Percent, Seconds};
use crate::report::Schematic;
use crate::trace::Trace;
use crate::trace::gantt::{Bound, Chart, Happened, Sheet, Table};

impl Report {
    /// A chart of this run's trace.
    pub fn chart<'a>(&self, trace: &'a Trace) -> Chart<'a> {
        let steps = match &self.details {
            Details::CoRun(of) => &of.steps[..],
            _ => &[],
        };
        let recorded = match &self.workload.parameters {
            Parameters::Recording(of) => Some(of.recorded_seconds),
            _ => None,
        };
        Chart {
            trace,
            about: self.about(),
            sheet: Sheet {
                plans: plans(steps.iter().map(|step| step.moved)),
                ..sheet(
                    self.seconds,
                    recorded,
                    &self.devices,
                    self.bounds.as_ref(),
                    &self.lost,
                )
            },
        }
    }
}

/// What is read of a report in JSON.
#[derive(Deserialize)]
struct Saved {
    schema: String,
    seconds: f64,
    devices: Vec<DevicePart>,
    #[serde(default)]
    bounds: Option<Bounds>,
    lost: Vec<Lost>,
    workload: serde_json::Value,
    details: serde_json::Value,
}

/// What a chart shows of a report that was printed as JSON; `None` if it is no such report.
pub fn saved(report: &serde_json::Value) -> Option<Sheet> {
    let saved = Saved::deserialize(report).ok()?;
    let known = saved.schema == Report::SCHEMA;
    let steps = saved.details["steps"].as_array().into_iter().flatten();
    let moved = |step: &serde_json::Value| step["moved"].as_u64().unwrap_or(0);
    known.then(|| Sheet {
        plans: plans(steps.map(moved)),
        ..sheet(
            saved.seconds,
            saved.workload["parameters"]["recorded_seconds"].as_f64(),
            &saved.devices,
            saved.bounds.as_ref(),
            &saved.lost,
        )
    })
}

fn losses(lost: &[Lost]) -> Vec<Happened> {
    let of = |lost: &Lost| {
        let device = lost.device.clone()?;
        let at = |step: Option<u32>, what| {
            step.map(|step| Happened {
                step,
                what: format!("{device} {what}"),
            })
        };
        Some([at(lost.step, "lost"), at(lost.back_step, "is back")])
    };
    lost.iter().filter_map(of).flatten().flatten().collect()
}

/// The steps that moved units at their begin, of which each moved so many.
fn plans(moved: impl Iterator<Item = u64>) -> Vec<Happened> {
    let plan = |(step, moved)| Happened {
        step,
        what: format!("{moved} units move"),
    };
    let steps = (0..).zip(moved).filter(|(_, moved)| *moved > 0);
    steps.map(plan).collect()
}

fn sheet(
    seconds: f64,
    recorded: Option<f64>,
    devices: &[DevicePart],
    bounds: Option<&Bounds>,
    lost: &[Lost],
) -> Sheet {
    let recorded = recorded.map(|seconds| Bound {
        name: "recorded time",
        meaning: "What StarPU took in the recorded run.",
        seconds,
    });
    let bounds = bounds.map(Bounds::shown).unwrap_or_default();
    Sheet {
        losses: losses(lost),
        bounds: bounds.into_iter().chain(recorded).collect(),
        table: Some(table(devices)),
        notes: vec![format!("Reported time: {}", Seconds(seconds))],
        ..Sheet::default()
    }
}

/// A figure of a device; `None` where it has none.
type Figure = fn(&DevicePart) -> Option<String>;

/// The columns after the device's name.
const COLUMNS: [(&str, Figure); 13] = [
    ("Kind", |of| of.kind.map(|kind| kind.name().to_owned())),
    ("Share", |of| Some(Percent(of.share).to_string())),
    ("Units", |of| Some(of.units.to_string())),
    ("Kernels", |of| of.kernels.map(|number| number.to_string())),
    ("Busy", |of| of.busy_seconds.map(seconds)),
    ("Idle", |of| of.idle_seconds.map(seconds)),
    ("Subtasks", |of| of.subtask_seconds.map(seconds)),
    ("Waits", |of| of.wait_seconds.map(seconds)),
    ("Chunks", |of| of.chunks.map(|number| number.to_string())),
    ("H2D", |of| of.bytes_h2d.map(bytes)),
    ("D2H", |of| of.bytes_d2h.map(bytes)),
    ("Peers", |of| of.bytes_peer.map(bytes)),
    ("Evictions", |of| {
        of.evictions.map(|number| number.to_string())
    }),
];

fn seconds(of: f64) -> String {
    Seconds(of).to_string()
}

fn bytes(of: u64) -> String {
    Bytes(of).to_string()
}

/// A row a device, without the columns that no device has.
fn table(devices: &[DevicePart]) -> Table {
    let has = |figure: &Figure| devices.iter().any(|of| figure(of).is_some());
    let columns = COLUMNS.iter().filter(|(_, figure)| has(figure));
    let columns: Vec<&(&str, Figure)> = columns.collect();
    let names = columns.iter().map(|(name, _)| (*name).to_owned());
    let row = |of: &DevicePart| {
        let name = match of.node {
            Some(rank) => format!("node {rank}, {}", of.name),
            None => of.name.clone(),
        };
        let figures = columns.iter().map(|(_, figure)| figure(of));
        let cells = figures.map(|text| text.unwrap_or_else(|| "-".to_owned()));
        [name].into_iter().chain(cells).collect()
    };
    Table {
        header: ["Device".to_owned()].into_iter().chain(names).collect(),
        rows: devices.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{context, outcome};
    use super::*;
    use crate::report::{Printed, run::corun};

    #[test]
    fn a_saved_report_gives_the_same_chart() {
        let outcome = outcome();
        let report = corun::report(&outcome, context(), Vec::new());
        let json = serde_json::to_value(Printed::from(&report)).unwrap();
        let chart = report.chart(&outcome.trace);
        let table = chart.sheet.table.as_ref().unwrap();
        assert_eq!(table.header[..4], ["Device", "Kind", "Share", "Units"]);
        assert_eq!(table.rows[1][..4], ["gpu0", "gpu", "57.5 %", "230"]);
        // A co-run has no evictions.
        assert!(!table.header.contains(&"Evictions".to_owned()));
        assert_eq!(chart.sheet.bounds[0].name, "area bound");
        assert_eq!(saved(&json), Some(chart.sheet));
    }

    #[test]
    fn other_json_is_no_report() {
        let report = corun::report(&outcome(), context(), Vec::new());
        let mut json = serde_json::to_value(Printed::from(&report)).unwrap();
        json["schema"] = "pdawl-report/9".into();
        assert_eq!(saved(&json), None);
        assert_eq!(
            saved(&serde_json::json!({"schema": "pdawl-report/2"})),
            None
        );
    }
}

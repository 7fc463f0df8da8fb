//! The reports on models: the list, one model, its accuracy on other runs, and its
//! adaptation to a machine.

pub mod adapted;
pub mod check;
pub mod known;
pub mod show;

pub use adapted::AdaptReport;
pub use check::CheckReport;
pub(super) use show::{Subject, write_validation};

use std::fmt::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use pdawl_profiler::bundle::Bundle;
use schemars::JsonSchema;
use serde::Serialize;

use super::style::{STRONG, origin, styled};
use super::table;

/// The heading of a text about a model.
pub(super) fn heading(
    out: &mut String,
    model: &str,
    machine: &str,
    simulated: bool,
) -> fmt::Result {
    writeln!(
        out,
        "model {} of {}{}\n",
        styled(STRONG, model),
        styled(STRONG, machine),
        origin(simulated)
    )
}

/// A time as people read it: `2026-11-20T10:27:08Z`.
fn date(seconds: u64) -> String {
    // Later than this is no time that can be written, and no time of training.
    const LAST: u64 = 253_402_300_799;
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds.min(LAST)))
        .to_string()
}

/// An error as people compare them: `1.68 %`.
fn percent(fraction: f64) -> String {
    format!("{:.2} %", 100.0 * fraction)
}

/// The models that there are.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ListReport {
    pub models: Vec<Listed>,
}

/// A model of the list.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Listed {
    /// What the command line calls it.
    pub name: String,
    /// Whether it ships with the program; else it is the user's.
    pub shipped: bool,
    pub machine: String,
    pub simulated: bool,
    pub fingerprint: Option<String>,
    /// The machine whose model it was, if it was adapted.
    pub adapted_from: Option<String>,
    /// Seconds since 1970 in UTC.
    pub trained_at: u64,
    pub models: Vec<ListedEntry>,
}

/// A codelet on a kind of device.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ListedEntry {
    pub kind: String,
    pub codelet: String,
    pub rows: usize,
    /// Cross-validated mean absolute percentage error, as a fraction.
    pub mape: Option<f64>,
}

impl Listed {
    pub fn of(name: &str, shipped: bool, bundle: &Bundle) -> Self {
        let entries = bundle.models.iter().map(|entry| ListedEntry {
            kind: entry.kind.clone(),
            codelet: entry.codelet.clone(),
            rows: entry.rows,
            mape: entry.validation.chosen().map(|chosen| chosen.accuracy.mape),
        });
        Self {
            name: name.to_owned(),
            shipped,
            machine: bundle.machine.clone(),
            simulated: bundle.simulated,
            fingerprint: bundle.fingerprint.clone(),
            adapted_from: bundle
                .adapted
                .as_ref()
                .map(|adapted| adapted.machine.clone()),
            trained_at: bundle.trained_at,
            models: entries.collect(),
        }
    }

    /// Where its times come from.
    fn times(&self) -> String {
        let times = if self.simulated {
            "simulated"
        } else {
            "measured"
        };
        match &self.adapted_from {
            Some(machine) => format!("{times}, adapted from {machine}"),
            None => times.to_owned(),
        }
    }
}

impl ListReport {
    /// The list as text.
    pub fn render(&self) -> String {
        if self.models.is_empty() {
            return "no models; `pdawl train --machine NAME` makes one\n".to_owned();
        }
        let header = ["Model", "Machine", "Times", "Trained", "", "Of", "MAPE"];
        let mut table = table::plain(&header, |column| column == 6);
        for model in &self.models {
            let each = |of: &dyn Fn(&ListedEntry) -> String| {
                let lines: Vec<String> = model.models.iter().map(of).collect();
                lines.join("\n")
            };
            table.add_row(vec![
                model.name.clone(),
                model.machine.clone(),
                model.times(),
                date(model.trained_at),
                if model.shipped { "shipped" } else { "" }.to_owned(),
                each(&|entry| format!("{} on {}", entry.codelet, entry.kind)),
                each(&|entry| entry.mape.map_or_else(|| "-".to_owned(), percent)),
            ]);
        }
        format!("{}\n", table.trim_fmt())
    }
}

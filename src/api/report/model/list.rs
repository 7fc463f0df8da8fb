//! The models that there are: `pdawl-modelling/1`.

use pdawl_profiler::bundle::Bundle;
use schemars::JsonSchema;
use serde::Serialize;

use super::{date, percent};
use crate::report::table;

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

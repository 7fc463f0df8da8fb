//! The report `pdawl-saved/1` of a command that wrote a machine file, a cluster file, a
//! model or a chart.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::args::Format;
use super::failure::Failure;
use super::terminal;

/// A machine, a cluster, a model or a chart that was written to a file.
#[derive(Debug, JsonSchema, Serialize)]
pub struct SavedReport<'a> {
    /// `machine`, `cluster`, `model` or `chart`.
    pub kind: &'static str,
    /// Its name on the command line; the titles of a chart's runs.
    pub name: &'a str,
    /// The machine itself, the machine of the model or of the chart's runs, or that of the
    /// cluster's first node.
    pub machine: &'a str,
    /// Whether a model was trained on simulated times, or a run of a chart was simulated;
    /// always false for others.
    pub simulated: bool,
    #[serde(serialize_with = "shown")]
    pub file: &'a Path,
}

fn shown<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

impl SavedReport<'_> {
    /// Prints the report as JSON, or this text.
    ///
    /// # Errors
    /// As [`terminal::print`].
    pub fn print(&self, format: Format, text: &str) -> Result<(), Failure> {
        terminal::print_report(format, self, |_| text.to_owned())
    }
}

//! The report `pdawl-saved/1` of a command that wrote a machine file, a cluster file, a
//! model or a chart; the command line and the time, for files that record their origin.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::parser::ValueSource;
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

/// The command line, such as `pdawl train --machine k40`.
pub fn command_line() -> String {
    let words = crate::arguments().iter().skip(1);
    let words: Vec<String> = words.map(|w| w.to_string_lossy().into_owned()).collect();
    format!("pdawl {}", words.join(" "))
}

/// The words after `pdawl run` that give this run, each option by its long name and in the order of
/// the help, without those of its outputs; `None` for another command.
pub fn run_words() -> Option<Vec<String>> {
    let (command, matches) = crate::parsed();
    let matches = matches.ok()?;
    let (name, given) = matches.subcommand()?.1.subcommand()?;
    let workload = command.find_subcommand("run")?.find_subcommand(name)?;
    let mut words = vec![name.to_owned()];
    for argument in workload.get_arguments() {
        let id = argument.get_id().as_str();
        let typed = given.value_source(id) == Some(ValueSource::CommandLine);
        let is_output = argument.get_help_heading() == Some("Output") && id != "verify";
        if !typed || is_output {
            continue;
        }
        let values = given.get_raw(id).into_iter().flatten();
        let values = values.map(|value| value.to_string_lossy().into_owned());
        match argument.get_long() {
            Some(long) if argument.get_action().takes_values() => {
                words.extend(values.flat_map(|value| [format!("--{long}"), value]));
            }
            Some(long) => words.push(format!("--{long}")),
            None => words.extend(values),
        }
    }
    Some(words)
}

/// Seconds since 1970 in UTC.
pub fn now() -> u64 {
    // A clock that is set before 1970 gives 0.
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

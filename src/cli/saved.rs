//! What a command tells after it has written one file that users asked for.

use std::path::Path;

use serde::Serialize;

use super::args::Format;
use super::failure::Failure;
use super::terminal;

/// The schema of this version.
const SCHEMA: &str = "pdawl-saved/1";

/// A machine or a model that is in a file now.
#[derive(Debug, Serialize)]
pub struct Saved<'a> {
    /// `machine` or `model`.
    pub kind: &'static str,
    /// What the command line calls it.
    pub name: &'a str,
    /// The machine that it is, or is of.
    pub machine: &'a str,
    /// Whether a model learned virtual times; a machine was measured.
    pub simulated: bool,
    #[serde(serialize_with = "shown")]
    pub file: &'a Path,
}

fn shown<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    #[serde(flatten)]
    saved: &'a Saved<'a>,
}

impl Saved<'_> {
    /// Tells programs of it, and people with these words.
    ///
    /// # Errors
    /// As [`terminal::print`].
    pub fn tell(&self, format: Format, words: &str) -> Result<(), Failure> {
        match format {
            Format::Text => terminal::print(words),
            Format::Json => terminal::print_json(&Report {
                schema: SCHEMA,
                saved: self,
            }),
        }
    }
}

//! Samples as CSV files: reading, checking, writing, and appending while a
//! profile runs.
//!
//! A file begins with the line `# pdawl-samples/1`, then has `# key: value`
//! lines that say where it comes from, a header, and a row a run. Ten columns
//! say which run it is and how long it took ([`IDENTITY`]); every other column
//! is a feature `group.what_unit`. An empty cell means that the figure was not
//! known. `docs/datasets.md` describes every column.
//!
//! * `row` is the order of columns, and a row in that order. It knows what a feature's
//!   name says: its group and its unit.
//! * `check` is what a run can be; [`Fault`] says what is wrong with one.
//! * [`read`] and [`write()`] take whole files; an [`Appender`] keeps what is
//!   there and adds a row as soon as it was measured.

mod check;
mod parse;
mod row;
mod write;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use check::{Key, key};
pub use parse::parse;
pub use row::{Feature, Group, IDENTITY, UNITS};
pub use write::{Appender, write};

use crate::Sample;
use crate::file_error::FileError;

/// The format of this version: a file's first line, after `# `.
pub const FORMAT: &str = "pdawl-samples/1";

/// Runs, and where they come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dataset {
    pub provenance: Provenance,
    pub samples: Vec<Sample>,
}

/// Reads and checks a dataset.
///
/// # Errors
/// A file that cannot be read or is no dataset of this version, and everything
/// that [`parse`] refuses: the message names the file, the line and the column.
pub fn read(path: &Path) -> Result<Dataset, DatasetError> {
    let file = path.display().to_string();
    let bytes = crate::file_error::read(path)?;
    parse(&bytes, &file)
}

/// An error of datasets.
#[derive(Debug, Error)]
pub enum DatasetError {
    #[error(transparent)]
    File(#[from] FileError),

    #[error("{file}: another program is writing it; wait for that, or give another file")]
    Busy { file: String },

    #[error("{file}: is empty; profile into it, or give another file")]
    Empty { file: String },

    #[error(
        "{file}, line 1: the first line must be `# {FORMAT}`, found {found}; \
         give a file that `pdawl profile` wrote, or put that line before the header"
    )]
    Format { file: String, found: String },

    #[error(
        "{file}: made by a newer pdawl, in the format `{found}`; this program reads `{FORMAT}`; \
         update pdawl"
    )]
    Newer { file: String, found: String },

    #[error("{file}, line {line}: {why}; {remedy}")]
    Line {
        file: String,
        line: usize,
        why: String,
        remedy: String,
    },

    #[error("{file}, line {line}, {fault}")]
    Value {
        file: String,
        line: usize,
        fault: Box<Fault>,
    },

    #[error("{file}: has no rows; profile into it, or give another file")]
    NoRows { file: String },

    #[error("{file}: not written: {run}: {fault}")]
    Refused {
        file: String,
        run: String,
        fault: Box<Fault>,
    },
}

/// What is wrong with one value of a run.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("column `{column}`: {} {why}; {remedy}", Quoted(.value))]
pub struct Fault {
    pub column: String,
    pub value: String,
    /// What is wrong, as `is negative`.
    pub why: String,
    pub remedy: String,
}

impl Fault {
    fn new(
        column: &str,
        value: impl fmt::Display,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            column: column.to_owned(),
            value: value.to_string(),
            why: why.into(),
            remedy: remedy.into(),
        }
    }
}

/// Shows a value from a file: short, and without characters that would disturb
/// a terminal.
struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        const MOST: usize = 40;
        f.write_str("`")?;
        for c in self.0.chars().take(MOST) {
            if c.is_control() {
                write!(f, "{}", c.escape_default())?;
            } else {
                write!(f, "{c}")?;
            }
        }
        let cut = self.0.chars().nth(MOST).is_some();
        f.write_str(if cut { "...`" } else { "`" })
    }
}

/// Pairs of a key and a value, in order: hardware, driver, date, command. A
/// key may come several times, as when a profile was continued.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(from = "Vec<(String, String)>")]
pub struct Provenance(Vec<(String, String)>);

impl Provenance {
    /// Adds a pair, if it is not there. Every pair is one line of a file
    /// `# key: value`, so line breaks and other control characters become
    /// blanks, blanks around are dropped, and so is a `:` in a key.
    pub fn add(&mut self, key: &str, value: &str) {
        let pair = (line(&key.replace(':', " ")), line(value));
        if !self.0.contains(&pair) {
            self.0.push(pair);
        }
    }

    /// Adds every pair of another that is not there.
    pub fn merge(&mut self, other: &Self) {
        for (key, value) in &other.0 {
            self.add(key, value);
        }
    }

    pub fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    /// Parses the text after `#` in a line.
    fn read_line(&mut self, text: &str) -> bool {
        match text.split_once(':') {
            Some((key, value)) if !key.trim().is_empty() => {
                self.add(key, value);
                true
            }
            _ => false,
        }
    }
}

impl From<Vec<(String, String)>> for Provenance {
    fn from(pairs: Vec<(String, String)>) -> Self {
        let mut provenance = Self::default();
        for (key, value) in &pairs {
            provenance.add(key, value);
        }
        provenance
    }
}

/// The text as a part of a line.
fn line(text: &str) -> String {
    let words: Vec<&str> = text
        .split(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect();
    words.join(" ")
}

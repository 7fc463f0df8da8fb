//! The errors of datasets, each with the file, the line, the column and the remedy.

use std::fmt;

use thiserror::Error;

use super::FORMAT;
use crate::file_error::FileError;

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
    pub(super) fn new(
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
pub(super) struct Quoted<'a>(pub &'a str);

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

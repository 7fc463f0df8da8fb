//! Samples as CSV files: reading, checking, writing, and appending while a
//! profile runs.
//!
//! A file begins with the line `# pdawl-samples/1`, then has `# key: value`
//! lines that say where it comes from, a header, and a row a run. Ten columns
//! say which run it is and how long it took ([`IDENTITY`]); every other column
//! is a feature `group.what_unit`. An empty cell means that the figure was not
//! known. `docs/datasets.md` describes every column.
//!
//! * `feature` knows what a feature's name says: its group and its unit.
//! * `row` is the order of columns, and a row in that order.
//! * `check` is what a run can be; [`Fault`] says what is wrong with one.
//! * [`read`] and [`write()`] take whole files; an [`Appender`] keeps what is
//!   there and adds a row as soon as it was measured.

mod check;
mod error;
mod feature;
mod parse;
mod provenance;
mod row;
mod write;

#[cfg(test)]
mod tests;

use std::path::Path;

pub use check::{Key, key};
pub use error::{DatasetError, Fault};
pub use feature::{Feature, Group, UNITS};
pub use parse::parse;
pub use provenance::Provenance;
pub use row::IDENTITY;
pub use write::{Appender, write};

use crate::Sample;

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

//! Model files: one JSON file with everything that a prediction on another machine
//! needs, and everything that says how far to believe it.
//!
//! The first keys are `format`, always [`FORMAT`], and `checksum`, the SHA-256
//! of everything else in a canonical form (keys sorted, no blanks), so that
//! reformatting a file changes nothing and any other change is noticed.
//!
//! * A [`Bundle`] has an [`CodeletModel`] for each kind of device and codelet.
//! * [`BundleError`] says what is wrong with a file, and what to do.
//! * `canonical` is the form for the checksum, `layout` the one for readers;
//!   `check` refuses values that no training gives.

mod canonical;
mod check;
mod entry;
mod error;
mod layout;
mod parse;
#[cfg(test)]
mod tests;

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use entry::{Adapted, CodeletModel, Explaining, Range};
pub use error::BundleError;

use crate::atomic_file;
use crate::dataset::Provenance;
use crate::file_error::{self, FileError};

/// The format of this version.
pub const FORMAT: &str = "pdawl-model/1";

/// A machine's models. In a file, unknown members, missing ones and a wrong checksum are
/// errors.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    /// What users call it.
    pub name: String,
    /// The version of the program that trained it.
    pub version: String,
    /// The machine that was profiled.
    pub machine: String,
    /// Whether the times that it learned are virtual.
    pub simulated: bool,
    /// The machine's fingerprint, if it is a particular one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// When it was trained: seconds since 1970 in UTC.
    pub trained_at: u64,
    /// Where the runs come from that it learned: pairs of a key and a value.
    pub provenance: Provenance,
    /// What a model for another machine was corrected from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapted: Option<Adapted>,
    /// The machine's description, in the form of the program that trained the model.
    pub machine_file: Value,
    /// One for each kind of device and codelet.
    pub models: Vec<CodeletModel>,
}

impl Bundle {
    /// Reads and checks a model file.
    ///
    /// # Errors
    /// A file that cannot be read, and everything that [`Bundle::parse`]
    /// refuses.
    pub fn read(path: &Path) -> Result<Self, BundleError> {
        let file = path.display().to_string();
        let bytes = file_error::read(path)?;
        let text = std::str::from_utf8(&bytes).map_err(|error| BundleError::Json {
            file: file.clone(),
            why: format!("byte {} is not UTF-8", error.valid_up_to()),
        })?;
        Self::parse(text, &file)
    }

    /// Reads and checks the text of a model file; `file` is its name in
    /// messages.
    ///
    /// # Errors
    /// What is no JSON (with line and column) or no model, what a newer version
    /// wrote, what was changed or cut off since it was written, missing and
    /// unknown fields (with their path), values that no training gives.
    pub fn parse(text: &str, file: &str) -> Result<Self, BundleError> {
        parse::parse(text, file)
    }

    /// The text of a model file; [`Bundle::parse`] gives the same bundle back,
    /// bit for bit.
    ///
    /// # Errors
    /// Values that [`Bundle::parse`] would refuse, such as figures that are not
    /// finite.
    pub fn to_text(&self) -> Result<String, BundleError> {
        let file = format!("model `{}`", self.name);
        let text = layout::text(&self.value(&file)?, &self.checksum()?);
        // JSON has no infinity and no NaN; what cannot be read must not be
        // written.
        parse::parse(&text, &file).map_err(|error| match error {
            BundleError::Schema { file, path, why } | BundleError::Value { file, path, why } => {
                BundleError::Refused { file, path, why }
            }
            other => other,
        })?;
        Ok(text)
    }

    /// Writes a model file: whole, or not at all.
    ///
    /// # Errors
    /// As [`Bundle::to_text`]; a path that cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), BundleError> {
        let text = self.to_text()?;
        atomic_file::write(path, |out| out.write_all(text.as_bytes()))
            .map_err(|source| FileError::write(path, source).into())
    }

    /// The checksum that the file of this bundle has, as 64 hexadecimal digits.
    ///
    /// # Errors
    /// A machine file that cannot be written as JSON.
    pub fn checksum(&self) -> Result<String, BundleError> {
        Ok(canonical::checksum(&self.value(&self.name)?))
    }

    /// The model of a kind of device (`cpu` or `gpu`) and a codelet.
    pub fn find(&self, kind: &str, codelet: &str) -> Option<&CodeletModel> {
        (self.models.iter()).find(|entry| entry.kind == kind && entry.codelet == codelet)
    }

    /// The content of its file, but for the checksum.
    fn value(&self, file: &str) -> Result<Value, BundleError> {
        let mut value = serde_json::to_value(self).map_err(|error| BundleError::Schema {
            file: file.to_owned(),
            path: ".".to_owned(),
            why: error.to_string(),
        })?;
        if let Value::Object(fields) = &mut value {
            fields.insert("format".to_owned(), FORMAT.into());
        }
        Ok(value)
    }
}

//! The file of a bundle: its format, its checksum, and what is wrong with one.

use std::path::Path;

use serde_json::Value;
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::Bundle;
use crate::atomic_file;
use crate::file_error::{self, FileError};

/// The format of this version.
pub const FORMAT: &str = "pdawl-model/1";

/// An error of model files.
#[derive(Debug, Error)]
pub enum BundleError {
    #[error(transparent)]
    File(#[from] FileError),

    #[error("{file}: is cut off or no JSON: {why}; get it again from its source")]
    Json { file: String, why: String },

    #[error(
        "{file}: is no pdawl model: its `format` must be `{FORMAT}`, found {found}; \
         give a file that `pdawl model export` wrote"
    )]
    Format { file: String, found: String },

    #[error(
        "{file}: made by {program} with format `{found}`; this program reads `{FORMAT}`; \
         update pdawl"
    )]
    Newer {
        file: String,
        /// `pdawl 2.0.0`, if the file says so.
        program: String,
        found: String,
    },

    #[error(
        "{file}: was changed or cut off since it was written: its checksum is {found}, \
         that of its content {computed}; get it again from its source"
    )]
    Checksum {
        file: String,
        found: String,
        computed: String,
    },

    #[error(
        "{file}: `{path}`: {why}; no pdawl of this format wrote it so: \
         get the file again from its source, or train the model again"
    )]
    Schema {
        file: String,
        path: String,
        why: String,
    },

    #[error("{file}: `{path}`: {why}; train the model again")]
    Value {
        file: String,
        path: String,
        why: String,
    },

    #[error(
        "{file}: not written, since it could not be read: `{path}`: {why} \
         (a figure that is not finite is null); train the model again"
    )]
    Refused {
        file: String,
        path: String,
        why: String,
    },
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
        parse(text, file)
    }

    /// The text of a model file; [`Bundle::parse`] gives the same bundle back,
    /// bit for bit.
    ///
    /// # Errors
    /// Values that [`Bundle::parse`] would refuse, such as figures that are not
    /// finite.
    pub fn to_text(&self) -> Result<String, BundleError> {
        let file = format!("model `{}`", self.name);
        let text = text(self.content(&file)?);
        // JSON has no infinity and no NaN; what cannot be read must not be
        // written.
        parse(&text, &file).map_err(|error| match error {
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
        Ok(checksum(&self.content(&self.name)?))
    }

    /// The content of its file, but for the checksum.
    pub(super) fn content(&self, file: &str) -> Result<Value, BundleError> {
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

/// The file of this content, a member a line; the first say what it is.
pub(super) fn text(mut content: Value) -> String {
    let checksum = Value::from(checksum(&content));
    let fields = content.as_object_mut().map(std::mem::take);
    let mut fields = fields.unwrap_or_default();
    let format = fields.remove("format").unwrap_or_default();
    let first = [
        ("format".to_owned(), format),
        ("checksum".to_owned(), checksum),
    ];
    let members = first.into_iter().chain(fields);
    let lines: Vec<String> = members
        .map(|(key, value)| format!("  \"{key}\": {value}"))
        .collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

/// The SHA-256 of a file's content in hexadecimal digits. The content is
/// everything but the checksum, as JSON with sorted keys and no blanks.
pub(super) fn checksum(content: &Value) -> String {
    // Objects of `serde_json` are sorted maps.
    let digest = Sha256::digest(content.to_string());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// As [`Bundle::parse`].
fn parse(text: &str, file: &str) -> Result<Bundle, BundleError> {
    let file = || file.to_owned();
    let mut content: Value = serde_json::from_str(text).map_err(|error| BundleError::Json {
        file: file(),
        why: error.to_string(),
    })?;
    check_format(&content, file())?;
    let mut fields = content.as_object_mut();
    let stated = fields.as_mut().and_then(|fields| fields.remove("checksum"));
    let computed = checksum(&content);
    if stated.as_ref().and_then(Value::as_str) != Some(&computed) {
        return Err(BundleError::Checksum {
            file: file(),
            found: match stated {
                Some(Value::String(found)) => found,
                Some(other) => other.to_string(),
                None => "missing".to_owned(),
            },
            computed,
        });
    }
    if let Some(fields) = content.as_object_mut() {
        fields.remove("format");
    }
    let bundle = serde_path_to_error::deserialize(&content);
    let bundle: Bundle = bundle.map_err(|error| BundleError::Schema {
        file: file(),
        path: error.path().to_string(),
        why: error.inner().to_string(),
    })?;
    match super::check(&bundle) {
        Ok(()) => Ok(bundle),
        Err((path, why)) => Err(BundleError::Value {
            file: file(),
            path,
            why,
        }),
    }
}

fn check_format(content: &Value, file: String) -> Result<(), BundleError> {
    let found = content.get("format").and_then(Value::as_str);
    let version = found.and_then(|found| found.strip_prefix("pdawl-model/"));
    let version = version.and_then(|version| version.parse::<u32>().ok());
    match (found, version) {
        (Some(FORMAT), _) => Ok(()),
        // Its schema may be anything, but this is where all versions say who
        // wrote them.
        (Some(found), Some(version)) if version > 1 => Err(BundleError::Newer {
            file,
            program: match content.get("version").and_then(Value::as_str) {
                Some(program) => format!("pdawl {program}"),
                None => "a newer pdawl".to_owned(),
            },
            found: found.to_owned(),
        }),
        _ => Err(BundleError::Format {
            file,
            found: found.map_or("none".to_owned(), |found| format!("{found:?}")),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        checksum(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn order_and_blanks_do_not_matter_and_values_do() {
        let plain = of(r#"{"a":[1,0.1],"b":{"c":null,"d":"x"}}"#);
        assert_eq!(
            plain,
            of(r#" {"b": {"d": "x", "c": null}, "a": [1, 1e-1]} "#)
        );
        for other in [
            r#"{"a":[1,0.2],"b":{"c":null,"d":"x"}}"#,
            r#"{"a":[0.1,1],"b":{"c":null,"d":"x"}}"#,
            r#"{"a":[1,0.1],"b":{"c":null,"d":"X"}}"#,
            r#"{"a":[1,0.1],"b":{"d":"x"}}"#,
        ] {
            assert_ne!(plain, of(other), "{other}");
        }
    }

    #[test]
    fn it_is_sha_256_of_the_compact_form() {
        // printf '{"a":1,"b":2}' | sha256sum
        assert_eq!(
            of("{\"b\": 2, \"a\": 1}"),
            "43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777"
        );
    }
}

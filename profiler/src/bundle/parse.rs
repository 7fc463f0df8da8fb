//! Parsing a model file.

use serde_json::Value;

use super::{Bundle, BundleError, FORMAT, canonical, check};

/// As [`Bundle::parse`].
pub(super) fn parse(text: &str, file: &str) -> Result<Bundle, BundleError> {
    let mut content: Value = serde_json::from_str(text).map_err(|error| BundleError::Json {
        file: file.to_owned(),
        why: error.to_string(),
    })?;
    format(&content, file)?;
    checksum(&mut content, file)?;
    if let Value::Object(fields) = &mut content {
        fields.remove("format");
    }
    let schema = |path: String, why: String| BundleError::Schema {
        file: file.to_owned(),
        path,
        why,
    };
    let bundle: Bundle = serde_path_to_error::deserialize(&content)
        .map_err(|error| schema(error.path().to_string(), error.inner().to_string()))?;
    // Not every part refuses fields that it does not know; what is not written
    // again was one.
    let known = serde_json::to_value(&bundle).map_err(|e| schema(".".into(), e.to_string()))?;
    if let Some(path) = unknown(&content, &known) {
        return Err(schema(path, "this field is unknown".to_owned()));
    }
    check::check(&bundle).map_err(|wrong| BundleError::Value {
        file: file.to_owned(),
        path: wrong.path,
        why: wrong.why,
    })?;
    Ok(bundle)
}

fn format(content: &Value, file: &str) -> Result<(), BundleError> {
    let found = content.get("format").and_then(Value::as_str);
    if found == Some(FORMAT) {
        return Ok(());
    }
    let file = file.to_owned();
    let version = found
        .and_then(|found| found.strip_prefix("pdawl-model/"))
        .and_then(|version| version.parse::<u32>().ok());
    match (found, version) {
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

/// Takes the checksum out of the content and compares it.
fn checksum(content: &mut Value, file: &str) -> Result<(), BundleError> {
    let fields = content.as_object_mut();
    let found = match fields.and_then(|fields| fields.remove("checksum")) {
        Some(Value::String(found)) => found,
        other => other.map_or("missing".to_owned(), |other| other.to_string()),
    };
    let computed = canonical::checksum(content);
    if found == computed {
        return Ok(());
    }
    Err(BundleError::Checksum {
        file: file.to_owned(),
        found,
        computed,
    })
}

/// The path of the first field of a file that is not `known`.
fn unknown(found: &Value, known: &Value) -> Option<String> {
    match (found, known) {
        (Value::Object(found), Value::Object(known)) => {
            found.iter().find_map(|(key, value)| match known.get(key) {
                // An optional field may be there and empty.
                None if value.is_null() => None,
                None => Some(key.clone()),
                Some(known) => unknown(value, known).map(|path| join(key, &path)),
            })
        }
        (Value::Array(found), Value::Array(known)) => {
            found
                .iter()
                .zip(known)
                .enumerate()
                .find_map(|(i, (value, known))| {
                    unknown(value, known).map(|path| join(&format!("[{i}]"), &path))
                })
        }
        _ => None,
    }
}

fn join(first: &str, rest: &str) -> String {
    let dot = if rest.starts_with('[') { "" } else { "." };
    format!("{first}{dot}{rest}")
}

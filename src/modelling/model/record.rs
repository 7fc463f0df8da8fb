//! A case as the named features of a dataset's row, and back.

use std::collections::BTreeMap;

use pdawl_profiler::Sample;
use thiserror::Error;

use super::case::Case;
use super::descriptors::Descriptors;
use super::features::{self, FEATURES, Known};

/// The errors of reading a row as a case.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum RecordError {
    #[error(
        "{configuration}, repeat {repeat}: `{feature}` is missing; a model needs it to know what \
         was run, so measure the configuration again"
    )]
    Missing {
        configuration: String,
        repeat: u32,
        feature: &'static str,
    },
    #[error(
        "{configuration}, repeat {repeat}: `{feature}` is {value}; it must be {wanted}, so correct \
         or remove the row"
    )]
    Impossible {
        configuration: String,
        repeat: u32,
        feature: &'static str,
        value: f64,
        wanted: &'static str,
    },
}

/// The features of a row that are known before its run, by name. What the
/// machine file does not say is absent.
pub fn features(case: &Case, descriptors: &Descriptors) -> BTreeMap<String, f64> {
    let values = features::values(case, descriptors);
    (features::NAMES.iter().zip(values))
        .filter(|(name, value)| features::is_kept(name) && !value.is_nan())
        .map(|(name, value)| ((*name).to_owned(), value))
        .collect()
}

/// The case and the machine that a row describes: the inverse of [`features()`].
///
/// # Errors
/// A feature that is missing or impossible, with the row's configuration.
pub fn read(sample: &Sample) -> Result<(Case, Descriptors), RecordError> {
    let mut known = Known::blank(|name| sample.features.contains_key(name));
    for feature in &FEATURES {
        let Some((figure, is_optional)) = feature.field(&mut known) else {
            continue;
        };
        match sample.features.get(feature.name) {
            Some(value) => figure
                .set(*value)
                .map_err(|wanted| RecordError::Impossible {
                    configuration: sample.configuration.clone(),
                    repeat: sample.repeat,
                    feature: feature.name,
                    value: *value,
                    wanted,
                })?,
            None if is_optional => {}
            None => {
                return Err(RecordError::Missing {
                    configuration: sample.configuration.clone(),
                    repeat: sample.repeat,
                    feature: feature.name,
                });
            }
        }
    }
    let Known { case, mut machine } = known;
    // A device that runs by itself shares the host's memory with no other.
    machine.host.shared_bandwidth = machine.host.bandwidth;
    Ok((case, machine))
}

#[cfg(test)]
mod tests;

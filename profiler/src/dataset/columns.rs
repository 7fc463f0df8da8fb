//! A dataset's columns and their order.

use std::collections::BTreeSet;

use super::feature::{Feature, NameError};
use crate::Sample;

/// The columns that every dataset has, in the order in which they are written:
/// which run it is, and what it took.
pub const IDENTITY: [&str; 10] = [
    "machine",
    "simulated",
    "device",
    "kind",
    "codelet",
    "configuration",
    "repeat",
    "counters",
    "steps",
    "seconds",
];

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// An index into [`IDENTITY`].
    Identity(usize),
    Feature(Feature),
}

impl Column {
    /// Understands a name of a header.
    ///
    /// # Errors
    /// A name that is neither one of [`IDENTITY`] nor a feature's.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        match IDENTITY.iter().position(|column| *column == name) {
            Some(index) => Ok(Self::Identity(index)),
            None => Feature::parse(name).map(Self::Feature),
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Identity(index) => IDENTITY[*index],
            Self::Feature(feature) => feature.name(),
        }
    }
}

/// The columns in which all these runs can be written: [`IDENTITY`], then
/// every feature that a run has, by group and within a group by name.
///
/// # Errors
/// A feature's name that a dataset cannot have.
pub fn of<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Result<Vec<Column>, NameError> {
    let mut names = BTreeSet::new();
    for sample in samples {
        names.extend(sample.features.keys().map(String::as_str));
    }
    let features: BTreeSet<Feature> = names
        .into_iter()
        .map(Feature::parse)
        .collect::<Result<_, _>>()?;
    Ok((0..IDENTITY.len())
        .map(Column::Identity)
        .chain(features.into_iter().map(Column::Feature))
        .collect())
}

//! Why there is no model.

use thiserror::Error;

use super::Family;
use crate::validate::TooFewGroups;

/// An error of training. Rows count from 0.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum TrainError {
    #[error(transparent)]
    TooFewGroups(#[from] TooFewGroups),

    #[error(
        "{rows} rows are fewer than the {clusters} clusters of features asked for; \
         profile more, or ask for fewer clusters"
    )]
    TooFewRows { rows: usize, clusters: usize },

    #[error(
        "none of the {features} features varies: there is nothing to learn from; \
         profile other sizes and settings"
    )]
    NoVaryingFeature { features: usize },

    #[error("row {row} (`{group}`) has {found} {what} instead of {expected}")]
    Length {
        row: usize,
        group: String,
        what: &'static str,
        found: usize,
        expected: usize,
    },

    #[error(
        "`{name}` of row {row} (`{group}`) is {value}: \
         it must be a finite number; leave out the row or the feature"
    )]
    NotFinite {
        row: usize,
        group: String,
        name: String,
        value: f64,
    },

    #[error(
        "`{name}` of row {row} (`{group}`) is {value}: \
         seconds must be finite and above 0; leave out the row"
    )]
    NotPositive {
        row: usize,
        group: String,
        name: String,
        value: f64,
    },

    #[error("the recipe cannot be followed: {what}")]
    Recipe { what: &'static str },

    #[error("no family of models could be fitted: {}", reasons(.failed))]
    AllFailed { failed: Vec<(Family, String)> },

    #[error("no threads to train with: {reason}; ask for fewer")]
    Threads { reason: String },

    #[error("training was interrupted; nothing was kept")]
    Interrupted,
}

fn reasons(failed: &[(Family, String)]) -> String {
    let lines: Vec<String> = failed
        .iter()
        .map(|(f, why)| format!("{f}: {why}"))
        .collect();
    lines.join("; ")
}

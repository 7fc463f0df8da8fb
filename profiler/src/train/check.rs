//! The conditions that a table must meet to be trained on, and the errors of training.

use thiserror::Error;

use super::{Family, Recipe};
use crate::table::{Row, Table};
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

/// Refuses tables that no model can be fitted to.
pub fn check(table: &Table, recipe: &Recipe) -> Result<(), TrainError> {
    for (number, row) in table.rows.iter().enumerate() {
        check_row(table, number, row)?;
    }
    let (rows, clusters) = (table.rows.len(), *recipe.clusters.start());
    if rows < clusters {
        return Err(TrainError::TooFewRows { rows, clusters });
    }
    let all: Vec<usize> = (0..rows).collect();
    if table.features(&all).features().is_empty() {
        return Err(TrainError::NoVaryingFeature {
            features: table.names.len(),
        });
    }
    Ok(())
}

fn check_row(table: &Table, number: usize, row: &Row) -> Result<(), TrainError> {
    let length = |what, found, expected| {
        if found == expected {
            return Ok(());
        }
        Err(TrainError::Length {
            row: number,
            group: row.group.clone(),
            what,
            found,
            expected,
        })
    };
    length("values", row.values.len(), table.names.len())?;
    length("baselines", row.baselines.len(), table.baselines.len())?;
    for (name, &value) in table.names.iter().zip(&row.values) {
        if !value.is_finite() {
            return Err(TrainError::NotFinite {
                row: number,
                group: row.group.clone(),
                name: name.clone(),
                value,
            });
        }
    }
    let times = [("seconds", row.seconds), ("prior", row.prior)];
    let baselines = table.baselines.iter().map(String::as_str);
    let baselines = baselines.zip(row.baselines.iter().copied());
    for (name, value) in times.into_iter().chain(baselines) {
        if !(value.is_finite() && value > 0.0) {
            return Err(TrainError::NotPositive {
                row: number,
                group: row.group.clone(),
                name: name.to_owned(),
                value,
            });
        }
    }
    Ok(())
}

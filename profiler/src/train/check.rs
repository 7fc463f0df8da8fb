//! The conditions that a table must meet to be trained on.

use super::{Recipe, TrainError};
use crate::table::{Row, Table};

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

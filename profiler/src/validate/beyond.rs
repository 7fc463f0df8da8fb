//! Validation beyond the measurements: the rows of the greatest sizes are held out
//! together.
//!
//! Cross-validation holds out what lies between other rows. A model that is
//! best there may be wild just outside, and predictions are wanted there, too.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::table::Table;

/// At least this part of the rows is held out, as long as it can be ...
const LEAST: f64 = 0.15;
/// ... without holding out more than this.
const MOST: f64 = 0.4;

/// Rows held out at the end of what was measured.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beyond {
    /// The feature that correlates most with the time.
    pub feature: String,
    /// Its values from here on are held out (up to here, if the time falls as
    /// it rises), in the feature's own unit.
    pub from: f64,
    /// How many rows are held out.
    pub rows: usize,
}

impl Beyond {
    /// Chooses the feature and, among `rows` of the table, whole groups; with
    /// it come the rows that are held out, ascending. `None` if they would be
    /// too many, as where a feature has only two values.
    pub fn of(table: &Table, rows: &[usize]) -> Option<(Self, Vec<usize>)> {
        let features = table.features(rows);
        // Rounding must not decide between a size in units and in bytes.
        let strength = |c: f64| (c.abs() * 1e9).round();
        let feature = features.features().iter().max_by(|a, b| {
            let strengths = strength(a.correlation).total_cmp(&strength(b.correlation));
            strengths.then_with(|| features.name(b).cmp(features.name(a)))
        })?;
        let sign = feature.correlation.signum();
        let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for &row in rows {
            groups.entry(&table.rows[row].group).or_default().push(row);
        }
        let value = |row: &usize| table.rows[*row].values[feature.index];
        let mut ends: Vec<(f64, Vec<usize>)> = groups
            .into_values()
            .map(|rows| {
                let mean = rows.iter().map(value).sum::<f64>() / rows.len() as f64;
                (mean, rows)
            })
            .collect();
        ends.sort_by(|a, b| (sign * b.0).total_cmp(&(sign * a.0)));
        let total = rows.len() as f64;
        let mut from = f64::NAN;
        let mut held = Vec::new();
        for (mean, group) in ends {
            let same = (mean - from).abs() <= 1e-9 * mean.abs();
            if held.len() as f64 >= LEAST * total && !same {
                break;
            }
            from = mean;
            held.extend(group);
        }
        if held.is_empty() || held.len() as f64 > MOST * total {
            return None;
        }
        held.sort_unstable();
        let beyond = Self {
            feature: features.name(feature).to_owned(),
            from,
            rows: held.len(),
        };
        Some((beyond, held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Row;

    fn table(rows: impl IntoIterator<Item = (f64, f64, f64)>) -> Table {
        let row = |(size, workers, seconds): (f64, f64, f64)| Row {
            group: format!("{size} {workers}"),
            values: vec![workers, size * 8.0, size],
            prior: 1.0,
            baselines: Vec::new(),
            seconds,
        };
        Table {
            names: ["workers", "bytes", "a_size"].map(String::from).to_vec(),
            baselines: Vec::new(),
            parts: Vec::new(),
            complete: false,
            rows: rows.into_iter().map(row).collect(),
        }
    }

    fn of(table: &Table) -> Option<(Beyond, Vec<usize>)> {
        Beyond::of(table, &(0..table.rows.len()).collect::<Vec<_>>())
    }

    #[test]
    fn the_greatest_sizes_are_held_out_whole() {
        let sizes = (1..=10).map(f64::from);
        let runs = sizes.flat_map(|size| [1.0, 2.0].map(|w| (size, w, size * size / w)));
        let twice = runs.flat_map(|run| [run, run]);
        let (beyond, rows) = of(&table(twice)).unwrap();
        assert_eq!(beyond.feature, "a_size");
        assert_eq!((beyond.from, beyond.rows), (9.0, 8));
        assert_eq!(rows, (32..40).collect::<Vec<_>>());
    }

    #[test]
    fn only_the_rows_asked_for_count() {
        let runs = (1..=20).map(|size| (f64::from(size), 1.0, f64::from(size)));
        let odd: Vec<usize> = (0..20).step_by(2).collect();
        let (beyond, rows) = Beyond::of(&table(runs), &odd).unwrap();
        assert_eq!((beyond.from, rows), (17.0, vec![16, 18]));
    }

    #[test]
    fn where_the_time_falls_the_least_values_are_held_out() {
        let workers = (1..=10).map(f64::from);
        let (beyond, rows) = of(&table(workers.map(|w| (1.0, w, 1.0 / w)))).unwrap();
        assert_eq!(beyond.feature, "workers");
        assert_eq!((beyond.from, rows), (2.0, vec![0, 1]));
    }

    #[test]
    fn two_sizes_have_nothing_beyond() {
        let runs = (0..10).map(|i| (f64::from(1 + i % 2), 1.0, f64::from(1 + i % 2)));
        assert_eq!(of(&table(runs)), None);
        assert_eq!(of(&Table::default()), None);
    }
}

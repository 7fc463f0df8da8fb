//! A group's runs as tables: one of what is known beforehand, and one of what
//! counters, traces and telemetry tell as well.

use std::collections::BTreeMap;

use pdawl_profiler::dataset::{Feature, Group, Unit};
use pdawl_profiler::{Row, Sample, Table};

use crate::model::{RecordError, baseline, features, prior, record};

/// A figure of a run that fewer of the rows than this have explains too little
/// to give up the other rows for it.
const USUAL: f64 = 0.8;

/// The features that plan. Columns are those that every row has.
///
/// # Errors
/// A row that does not say what was run.
pub fn planning(samples: &[&Sample]) -> Result<Table, RecordError> {
    let mut all = Vec::with_capacity(samples.len());
    let mut rows = Vec::with_capacity(samples.len());
    for sample in samples {
        let (case, descriptors) = record::read(sample)?;
        all.push(features::values(&case, &descriptors));
        rows.push(Row {
            group: sample.configuration.clone(),
            values: Vec::new(),
            prior: prior::seconds(&case, &descriptors),
            baselines: baseline::all(&case, &descriptors).to_vec(),
            seconds: sample.step_seconds(),
        });
    }
    let columns: Vec<usize> = (0..features::NAMES.len())
        .filter(|column| all.iter().all(|values| values[*column].is_finite()))
        .collect();
    for (row, values) in rows.iter_mut().zip(&all) {
        row.values = columns.iter().map(|column| values[*column]).collect();
    }
    Ok(Table {
        names: (columns.iter())
            .map(|column| features::NAMES[*column].to_owned())
            .collect(),
        baselines: baseline::NAMES.map(str::to_owned).to_vec(),
        rows,
    })
}

/// What is known beforehand, and what is known only after a run: the rows that
/// have what most rows have. `None` if the runs came with no such figures.
///
/// `planning` is the samples' own table. Sums over a run become sums over a
/// step, since a step's time is to be explained.
pub fn explaining(samples: &[&Sample], planning: &Table) -> Option<Table> {
    let figures: Vec<BTreeMap<&str, f64>> = samples.iter().map(|s| after(s)).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in figures.iter().flat_map(BTreeMap::keys) {
        *counts.entry(name).or_default() += 1;
    }
    let enough = USUAL * samples.len() as f64;
    counts.retain(|_, rows| *rows as f64 >= enough);
    if counts.is_empty() {
        return None;
    }
    let rows = (planning.rows.iter().zip(&figures))
        .filter_map(|(row, figures)| {
            let more: Option<Vec<f64>> = counts.keys().map(|n| figures.get(n).copied()).collect();
            let mut row = row.clone();
            row.values.extend(more?);
            Some(row)
        })
        .collect();
    let mut names = planning.names.clone();
    names.extend(counts.keys().map(|name| (*name).to_owned()));
    Some(Table {
        names,
        baselines: planning.baselines.clone(),
        rows,
    })
}

/// A run's figures that are known only after it, a step.
fn after(sample: &Sample) -> BTreeMap<&str, f64> {
    let steps = f64::from(sample.steps.max(1));
    (sample.features.iter())
        .filter_map(|(name, value)| {
            let feature = Feature::parse(name).ok()?;
            let value = match (feature.group(), feature.unit()) {
                (group, _) if group.is_known_before() => return None,
                (Group::Counter | Group::Trace, Unit::Count | Unit::Seconds | Unit::Bytes)
                | (Group::Telemetry, Unit::Joules) => value / steps,
                _ => *value,
            };
            value.is_finite().then_some((name.as_str(), value))
        })
        .collect()
}

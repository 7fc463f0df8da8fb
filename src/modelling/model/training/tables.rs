//! A group's runs as tables: one with what is known before a run, and one with
//! counters, traces and telemetry added.

use std::collections::BTreeMap;

use pdawl_profiler::dataset::{Feature, Group};
use pdawl_profiler::{Row, Sample, Table};

use crate::model::{Case, RecordError, baseline, features, prior, record};

/// The least part of the rows that must have a figure: rows without it are given up.
const USUAL: f64 = 0.8;

/// The table of the features that plan. Its columns are the features that every row
/// has.
///
/// # Errors
/// A row that lacks the description of its run.
pub fn planning(samples: &[&Sample]) -> Result<Table, RecordError> {
    let mut all = Vec::with_capacity(samples.len());
    let mut rows = Vec::with_capacity(samples.len());
    for sample in samples {
        let (case, descriptors) = record::read(sample)?;
        all.push(features::values(&case, &descriptors));
        rows.push(Row {
            group: group(sample, &case),
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
    let summands = places(&columns, features::is_summand);
    let all_summands = (0..features::NAMES.len()).filter(|i| features::is_summand(*i));
    let complete = summands.len() == all_summands.count();
    Ok(Table {
        names: (columns.iter())
            .map(|column| features::NAMES[*column].to_owned())
            .collect(),
        baselines: baseline::NAMES.map(str::to_owned).to_vec(),
        parts: match complete {
            true => summands,
            false => places(&columns, features::is_bound),
        },
        complete,
        rows,
    })
}

/// The places of those columns whose feature `is_one`.
fn places(columns: &[usize], is_one: impl Fn(usize) -> bool) -> Vec<usize> {
    (0..columns.len())
        .filter(|place| is_one(columns[*place]))
        .collect()
}

/// The validation group of a row: the runs of its configuration or, of a product, all
/// runs of its matrix, since predictions are wanted of matrices that were never
/// measured.
fn group(sample: &Sample, case: &Case) -> String {
    match &case.work.matrix {
        None => sample.configuration.clone(),
        Some(matrix) => format!(
            "{}x{}, {} nonzeros, bandwidth {}, deviation {}",
            matrix.rows, matrix.columns, matrix.nonzeros, matrix.bandwidth, matrix.variation
        ),
    }
}

/// The table with what is known only after a run, of the rows that have what most rows
/// have. `None` if the runs have no such figures.
///
/// `planning` is the table of the same samples. Sums over a run become sums over a
/// step, since the model explains a step's time.
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
        parts: planning.parts.clone(),
        complete: planning.complete,
        rows,
    })
}

/// The figures of a run that are known only after it, per step.
fn after(sample: &Sample) -> BTreeMap<&str, f64> {
    let steps = f64::from(sample.steps.max(1));
    (sample.features.iter())
        .filter_map(|(name, value)| {
            let feature = Feature::parse(name).ok()?;
            let value = match (feature.group(), feature.unit()) {
                (group, _) if group.is_known_before() => return None,
                (Group::Counter | Group::Trace, "count" | "seconds" | "bytes")
                | (Group::Telemetry, "joules") => value / steps,
                _ => *value,
            };
            value.is_finite().then_some((name.as_str(), value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::training::fixtures;

    fn samples() -> Vec<Sample> {
        fixtures::samples(&fixtures::machine("k40"))
    }

    fn all(samples: &[Sample]) -> Vec<&Sample> {
        samples.iter().collect()
    }

    #[test]
    fn a_planning_table_has_what_is_known_before_the_run() {
        let mut samples = samples();
        for sample in &mut samples {
            let features = &mut sample.features;
            features.insert("counter.cycles_count".into(), 1e9);
            features.insert("trace.kernel_seconds".into(), sample.seconds);
        }
        let table = planning(&all(&samples)).unwrap();
        assert_eq!(table.baselines, baseline::NAMES);
        assert!(table.names.contains(&"derived.traffic_bytes".to_owned()));
        assert!(table.names.contains(&"prior.total_seconds".to_owned()));
        for name in &table.names {
            assert!(
                !name.starts_with("counter.") && !name.starts_with("trace."),
                "{name}"
            );
            assert!(!name.contains("device"), "no host row has {name}");
        }
        let place = table.names.iter().position(|n| n == "known.units_count");
        for (row, sample) in table.rows.iter().zip(&samples) {
            assert_eq!(row.values.len(), table.names.len());
            assert_eq!(
                row.values[place.unwrap()],
                sample.features["known.units_count"]
            );
            assert_eq!(row.seconds, sample.seconds / 5.0, "of a step");
            assert!(row.prior > 0.0 && row.baselines.iter().all(|b| *b > 0.0));
        }
    }

    #[test]
    fn of_grids_on_cores_the_parts_make_up_the_whole() {
        let samples = samples();
        let mut table = planning(&all(&samples)).unwrap();
        let named = |table: &Table| -> Vec<String> {
            let parts = table.parts.iter();
            parts.map(|place| table.names[*place].clone()).collect()
        };
        assert!(table.complete);
        assert_eq!(table.hidden(), table.parts);
        let summands = (0..features::NAMES.len()).filter(|i| features::is_summand(*i));
        let summands: Vec<&str> = summands.map(|index| features::NAMES[index]).collect();
        assert_eq!(named(&table), summands);
        table.complete = false;
        assert!(table.hidden().is_empty());
    }

    #[test]
    fn an_explaining_table_has_what_most_runs_tell_of_themselves() {
        let mut samples = samples();
        let plan = planning(&all(&samples)).unwrap();
        assert_eq!(explaining(&all(&samples), &plan), None);
        for (i, sample) in samples.iter_mut().enumerate() {
            let features = &mut sample.features;
            if i != 3 {
                features.insert("counter.cycles_count".into(), 1e9);
                features.insert("counter.scaled_ratio".into(), 0.5);
            }
            if i < 3 {
                features.insert("telemetry.power_watts".into(), 250.0);
            }
        }
        let table = explaining(&all(&samples), &plan).unwrap();
        assert_eq!(
            table.rows.len(),
            samples.len() - 1,
            "one run has no counters"
        );
        let more = &table.names[plan.names.len()..];
        assert_eq!(more, ["counter.cycles_count", "counter.scaled_ratio"]);
        let figures = &table.rows[0].values[plan.names.len()..];
        assert_eq!(
            figures,
            [2e8, 0.5],
            "cycles of a step, and a ratio as it is"
        );
    }

    #[test]
    fn a_row_that_does_not_say_what_was_run_is_named() {
        let mut samples = samples();
        samples[13].features.remove("known.units_count");
        let message = planning(&all(&samples)).unwrap_err().to_string();
        assert!(
            message.contains("1000x300 f64; host:1, repeat 1"),
            "{message}"
        );
        assert!(message.contains("known.units_count"), "{message}");
    }
}

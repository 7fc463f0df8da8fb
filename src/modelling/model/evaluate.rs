//! The accuracy of a model on runs that it has not learned.

use std::collections::BTreeMap;

use pdawl_profiler::bundle::{Bundle, CodeletModel, Range};
use pdawl_profiler::train::Baseline;
use pdawl_profiler::validate::Accuracy;
use pdawl_profiler::{Fitted, Row, Sample, Table, median};
use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;

use super::predictor::contents;
use super::training::{self, SampleGroup, groups};
use super::{RecordError, baseline};

/// A model on some runs of a codelet on a kind of device. Predictions use what
/// is known before a run, and nothing else. Errors are fractions: 0.02 is 2 %.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Evaluation {
    /// `cpu` or `gpu`.
    pub kind: String,
    pub codelet: String,
    pub rows: usize,
    pub configurations: usize,
    pub model: Accuracy,
    /// Physics without a model, and the baselines that a model must beat.
    pub baselines: Vec<Baseline>,
    /// The accuracy on the medians of configurations, which single disturbances do not
    /// move.
    pub medians: Medians,
    /// Rows with a feature outside its training range, and the number of such rows by
    /// feature.
    pub outside: usize,
    pub outside_by: BTreeMap<String, usize>,
    /// Every run, in the order of the dataset.
    pub runs: Vec<PredictedRun>,
}

/// A model on the medians of configurations.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Medians {
    pub model: Accuracy,
    pub baselines: Vec<Baseline>,
    /// How far single runs are from the median of their configuration, on
    /// average: no model can predict a run better than that.
    pub noise: f64,
}

/// Seconds of a step of one run, measured and predicted.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct PredictedRun {
    /// Which run it is: these three name one of a dataset's machine and codelet.
    pub device: String,
    pub configuration: String,
    pub repeat: u32,
    pub measured: f64,
    pub predicted: f64,
    /// By [`Evaluation::baselines`], in their order.
    pub baselines: Vec<f64>,
}

/// The errors of an evaluation.
#[derive(Debug, Error)]
pub enum EvaluationError {
    #[error(transparent)]
    Record(#[from] RecordError),

    #[error(
        "model `{model}` has nothing for {codelet} on {kind}; it has {has}. \
         Train one with such runs, or give a dataset without them"
    )]
    NoModel {
        model: String,
        kind: String,
        codelet: String,
        has: String,
    },

    #[error(
        "{codelet} on {kind}: model `{model}` wants `{feature}`, which the runs do not tell; \
         profile them again with this version"
    )]
    NoFeature {
        model: String,
        kind: String,
        codelet: String,
        feature: String,
    },
}

/// Predicts every run of a dataset, group by group.
///
/// # Errors
/// A group that the model has nothing for, or that lacks what it wants to know.
pub fn evaluate(bundle: &Bundle, samples: &[Sample]) -> Result<Vec<Evaluation>, EvaluationError> {
    groups(samples)
        .iter()
        .map(|group| one(bundle, group))
        .collect()
}

fn one(bundle: &Bundle, group: &SampleGroup) -> Result<Evaluation, EvaluationError> {
    let entry = bundle.find(group.kind, group.codelet);
    let entry = entry.ok_or_else(|| EvaluationError::NoModel {
        model: bundle.name.clone(),
        kind: group.kind.to_owned(),
        codelet: group.codelet.to_owned(),
        has: contents(bundle),
    })?;
    let table = training::planning(&group.samples)?;
    let places = places(&entry.fitted, &table).map_err(|feature| EvaluationError::NoFeature {
        model: bundle.name.clone(),
        kind: group.kind.to_owned(),
        codelet: group.codelet.to_owned(),
        feature,
    })?;
    let runs = runs(entry, group, &table, &places);
    let medians = medians(&runs);
    let (outside, outside_by) = outside(entry, &table);
    Ok(Evaluation {
        kind: group.kind.to_owned(),
        codelet: group.codelet.to_owned(),
        rows: table.rows.len(),
        configurations: medians.len(),
        model: accuracy(&runs, |run| run.predicted),
        baselines: baselines(&runs),
        medians: Medians {
            model: accuracy(&medians, |run| run.predicted),
            baselines: baselines(&medians),
            noise: noise(&runs, &medians),
        },
        outside,
        outside_by,
        runs,
    })
}

/// The accuracy of `predicted`.
fn accuracy(runs: &[PredictedRun], predicted: impl Fn(&PredictedRun) -> f64) -> Accuracy {
    let pairs: Vec<(f64, f64)> = (runs.iter())
        .map(|run| (run.measured, predicted(run)))
        .collect();
    Accuracy::of(&pairs)
}

/// The accuracy of the prior and of the baselines.
fn baselines(runs: &[PredictedRun]) -> Vec<Baseline> {
    (["prior"].iter().chain(&baseline::NAMES).enumerate())
        .map(|(place, name)| Baseline {
            name: (*name).to_owned(),
            accuracy: accuracy(runs, |run| run.baselines[place]),
            beyond: None,
        })
        .collect()
}

/// The first run of each configuration, with the median of all its runs as its time.
fn medians(runs: &[PredictedRun]) -> Vec<PredictedRun> {
    let mut by: BTreeMap<(&str, &str), Vec<&PredictedRun>> = BTreeMap::new();
    for run in runs {
        by.entry((&run.device, &run.configuration))
            .or_default()
            .push(run);
    }
    (by.values())
        .map(|runs| PredictedRun {
            measured: median(runs.iter().map(|run| run.measured)).unwrap_or(0.0),
            ..runs[0].clone()
        })
        .collect()
}

/// The mean relative distance of runs from their configuration's median.
fn noise(runs: &[PredictedRun], medians: &[PredictedRun]) -> f64 {
    let of: BTreeMap<(&str, &str), f64> = (medians.iter())
        .map(|m| ((m.device.as_str(), m.configuration.as_str()), m.measured))
        .collect();
    let distances = (runs.iter()).map(|run| {
        let median = of[&(run.device.as_str(), run.configuration.as_str())];
        (run.measured / median - 1.0).abs()
    });
    distances.sum::<f64>() / runs.len().max(1) as f64
}

/// Every run of a group, whose `table` has a row for each in the same order.
fn runs(
    entry: &CodeletModel,
    group: &SampleGroup,
    table: &Table,
    places: &[usize],
) -> Vec<PredictedRun> {
    let predicted = |row: &Row| {
        let values: Vec<f64> = places.iter().map(|place| row.values[*place]).collect();
        entry.fitted.predict(&values, row.prior)
    };
    (group.samples.iter().zip(&table.rows))
        .map(|(sample, row)| PredictedRun {
            device: sample.device.clone(),
            configuration: sample.configuration.clone(),
            repeat: sample.repeat,
            measured: row.seconds,
            predicted: predicted(row),
            baselines: [&[row.prior], &row.baselines[..]].concat(),
        })
        .collect()
}

/// The places of a model's inputs in a table's rows, or the input that the table lacks.
pub fn places(fitted: &Fitted, table: &Table) -> Result<Vec<usize>, String> {
    (fitted.inputs.iter())
        .map(|input| {
            let place = table.names.iter().position(|name| *name == input.name);
            place.ok_or_else(|| input.name.clone())
        })
        .collect()
}

/// Rows outside the training ranges, and their number by feature.
fn outside(entry: &CodeletModel, table: &Table) -> (usize, BTreeMap<String, usize>) {
    let is_input = |name: &String| entry.fitted.inputs.iter().any(|input| input.name == *name);
    let ranges: Vec<(usize, &String, &Range)> = (table.names.iter().enumerate())
        .filter(|(_, name)| name.starts_with("known.") || is_input(name))
        .filter_map(|(place, name)| Some((place, name, entry.ranges.get(name)?)))
        .collect();
    let mut by = BTreeMap::new();
    let mut rows = 0;
    for row in &table.rows {
        let mut any = false;
        for (place, name, range) in &ranges {
            if !range.holds(row.values[*place]) {
                *by.entry((*name).clone()).or_default() += 1;
                any = true;
            }
        }
        rows += usize::from(any);
    }
    (rows, by)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::training::fixtures::{CODELET, machine, model, samples};

    #[test]
    fn held_out_runs_are_predicted_by_what_is_known_before() {
        let machine = machine("k40");
        let (mut learned, mut held) = (samples(&machine), samples(&machine));
        learned.retain(|s| s.features["known.units_count"] % 200.0 != 0.0);
        held.retain(|s| s.features["known.units_count"] % 200.0 == 0.0);
        let bundle = model("mine", &machine, &learned);
        let evaluations = evaluate(&bundle, &held).unwrap();
        let [evaluation] = &evaluations[..] else {
            panic!("one group, not {}", evaluations.len());
        };
        assert_eq!((evaluation.rows, evaluation.configurations), (30, 15));
        assert!(evaluation.model.mape < 0.02, "{:?}", evaluation.model);
        for baseline in &evaluation.baselines {
            assert!(
                baseline.accuracy.mape > evaluation.model.mape,
                "{}",
                baseline.name
            );
        }
        for (run, sample) in evaluation.runs.iter().zip(&held) {
            assert_eq!(run.configuration, sample.configuration);
            assert_eq!((&run.device, run.repeat), (&sample.device, sample.repeat));
            assert_eq!(run.measured, sample.step_seconds());
        }
        let errors = (evaluation.runs.iter()).map(|run| (run.predicted / run.measured - 1.0).abs());
        let mape = errors.sum::<f64>() / evaluation.rows as f64;
        assert!((mape - evaluation.model.mape).abs() < 1e-12, "{mape}");
        // Medians of two runs are their means, and runs are as far from it.
        assert_eq!(
            evaluation.medians.baselines.len(),
            evaluation.baselines.len()
        );
        assert!(evaluation.medians.model.mape < 0.02);
        let spread = (evaluation.runs.chunks(2)).map(|two| {
            (two[0].measured - two[1].measured).abs() / (two[0].measured + two[1].measured)
        });
        let noise = spread.sum::<f64>() / 15.0;
        assert!((evaluation.medians.noise - noise).abs() < 1e-12, "{noise}");
        // Of 200 to 1000 units, only 1000 were beyond what was learned.
        assert_eq!(evaluation.outside, 6);
        assert_eq!(evaluation.outside_by["known.units_count"], 6);
    }

    #[test]
    fn what_the_model_has_nothing_for_is_reported() {
        let machine = machine("k40");
        let mut samples = samples(&machine);
        let bundle = model("mine", &machine, &samples);
        samples[0].codelet = "stencil7-f64".into();
        let message = evaluate(&bundle, &samples).unwrap_err().to_string();
        assert!(
            message.contains("nothing for stencil7-f64 on cpu"),
            "{message}"
        );
        assert!(
            message.contains(&format!("it has {CODELET} on cpu")),
            "{message}"
        );
    }
}

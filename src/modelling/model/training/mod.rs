//! From a machine's samples to the models of a bundle.
//!
//! [`groups`] sorts samples by kind of device and codelet; each group gets
//! models of its own. A group's samples are turned into the numbers that models
//! are fitted to: once with the figures known before a run, for the model that plans,
//! and once with counters, traces and telemetry added, for the model that explains.
//! Both are fitted, and [`ModelDescription::bundle`] puts all groups' models into
//! one file's content.

#[cfg(test)]
pub(super) mod fixtures;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use pdawl_profiler::bundle::{Adapted, Bundle, CodeletModel, Explaining, Range};
use pdawl_profiler::dataset::{Feature, Group, Provenance};
use pdawl_profiler::train::{Recipe, TrainError, Trained, Validation, train};
use pdawl_profiler::{Row, Sample, Table};
use thiserror::Error;

use super::RecordError;
use super::command::profile;
use crate::machine::MachineFile;
use crate::model::{Case, baseline, features, prior, record};

/// Runs of one codelet on one kind of device.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleGroup<'a> {
    /// `cpu` or `gpu`.
    pub kind: &'a str,
    pub codelet: &'a str,
    pub samples: Vec<&'a Sample>,
}

/// The groups of some samples, sorted by kind and codelet; samples keep their
/// order.
pub fn groups(samples: &[Sample]) -> Vec<SampleGroup<'_>> {
    let mut groups: BTreeMap<(&str, &str), Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        let key = (sample.kind.as_str(), sample.codelet.as_str());
        groups.entry(key).or_default().push(sample);
    }
    (groups.into_iter())
        .map(|((kind, codelet), samples)| SampleGroup {
            kind,
            codelet,
            samples,
        })
        .collect()
}

/// An error of training.
#[derive(Debug, Error)]
pub enum TrainingError {
    #[error("there are no runs to learn from; {} makes some", profile(.codelet, .machine))]
    NoRuns { machine: String, codelet: String },

    #[error(
        "no run of {codelet} on {kind} is among the {runs} runs; {} makes some",
        profile(.codelet, .machine)
    )]
    NoGroup {
        kind: String,
        codelet: String,
        machine: String,
        runs: usize,
    },

    #[error(
        "a run of `{found}` stands among those of `{machine}`; \
         a model is of one machine, so give a dataset with runs of that one"
    )]
    OtherMachine { machine: String, found: String },

    #[error("{kind}, {codelet}: {source}")]
    Record {
        kind: String,
        codelet: String,
        source: RecordError,
    },

    #[error(
        "no model of {codelet} on {kind}: {source}. {} adds runs",
        profile(.codelet, .machine)
    )]
    Train {
        kind: String,
        codelet: String,
        machine: String,
        source: Box<TrainError>,
    },

    #[error("training was interrupted; no model was written")]
    Interrupted,
}

/// The samples to learn from, and the groups that must get a model.
#[derive(Clone, Debug)]
pub struct TrainingRequest<'a> {
    pub machine: &'a str,
    pub samples: &'a [Sample],
    /// The codelet that must get a model on a kind of device; `None` for any codelet of the
    /// samples. Other groups get models, too, if they have enough runs.
    pub codelet: Option<&'a str>,
    /// The kinds of device on which that codelet is wanted.
    pub kinds: &'a [&'a str],
    pub recipe: &'a Recipe,
}

/// The models of a machine.
#[derive(Clone, Debug)]
pub struct TrainedModels {
    pub groups: Vec<GroupModel>,
    /// Groups that got no model, and why.
    pub left_out: Vec<String>,
}

impl TrainedModels {
    /// The entries of the model file.
    pub fn entries(&self) -> Vec<CodeletModel> {
        self.groups.iter().map(GroupModel::entry).collect()
    }
}

/// Fits models of all groups of a machine's samples.
///
/// # Errors
/// Samples of another machine; a codelet without a model on any of the kinds, by its first
/// failure; an interruption.
pub fn fit_all(
    lesson: &TrainingRequest,
    progress: TrainingProgress,
    stop: &AtomicBool,
) -> Result<TrainedModels, TrainingError> {
    let &TrainingRequest {
        machine,
        samples,
        codelet,
        kinds,
        recipe,
    } = lesson;
    if samples.is_empty() {
        return Err(TrainingError::NoRuns {
            machine: machine.to_owned(),
            codelet: codelet.unwrap_or_default().to_owned(),
        });
    }
    if let Some(other) = samples.iter().find(|sample| sample.machine != machine) {
        return Err(TrainingError::OtherMachine {
            machine: machine.to_owned(),
            found: other.machine.clone(),
        });
    }
    let groups = groups(samples);
    let mut models = TrainedModels {
        groups: Vec::new(),
        left_out: Vec::new(),
    };
    // Of the codelet. It needs a model on one kind of device; what lacks one on others is noted.
    let mut failed = Vec::new();
    for (codelet, kind) in codelet
        .iter()
        .flat_map(|c| kinds.iter().map(move |k| (*c, *k)))
    {
        if !(groups.iter()).any(|group| group.kind == kind && group.codelet == codelet) {
            failed.push(TrainingError::NoGroup {
                kind: kind.to_owned(),
                codelet: codelet.to_owned(),
                machine: machine.to_owned(),
                runs: samples.len(),
            });
        }
    }
    let is_asked = |of: &str| codelet.is_none_or(|codelet| of == codelet);
    for (number, group) in groups.iter().enumerate() {
        let recipe = &Recipe {
            deadline: recipe.deadline.map(|end| part(end, groups.len() - number)),
            ..recipe.clone()
        };
        match fit(group, machine, recipe, progress, stop) {
            Ok(model) => models.groups.push(model),
            Err(TrainingError::Interrupted) => return Err(TrainingError::Interrupted),
            Err(error) if is_asked(group.codelet) => failed.push(error),
            Err(error) => models.left_out.push(error.to_string()),
        }
    }
    if !models.groups.iter().any(|model| is_asked(&model.codelet)) && !failed.is_empty() {
        return Err(failed.swap_remove(0));
    }
    (models.left_out).extend(failed.iter().map(TrainingError::to_string));
    Ok(models)
}

/// The end of the next of `parts` equal parts of the time until `end`.
fn part(end: Instant, parts: usize) -> Instant {
    let now = Instant::now();
    now + end.saturating_duration_since(now) / parts.max(1) as u32
}

/// The description of a model file.
#[derive(Clone, Debug)]
pub struct ModelDescription<'a> {
    pub name: &'a str,
    pub machine: &'a MachineFile,
    pub simulated: bool,
    /// Seconds since 1970 in UTC.
    pub trained_at: u64,
    pub provenance: Provenance,
    /// The model that it was corrected from.
    pub adapted: Option<Adapted>,
}

impl ModelDescription<'_> {
    /// The content of the model's file.
    ///
    /// # Errors
    /// A machine that cannot be written as JSON; every machine that a file describes can.
    pub fn bundle(self, models: Vec<CodeletModel>) -> Result<Bundle, serde_json::Error> {
        Ok(Bundle {
            name: self.name.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: self.machine.name.clone(),
            simulated: self.simulated,
            fingerprint: self.machine.fingerprint.clone(),
            trained_at: self.trained_at,
            provenance: self.provenance,
            adapted: self.adapted,
            machine_file: serde_json::to_value(self.machine)?,
            models,
        })
    }
}

// A group's runs as tables: one with what is known before a run, and one with
// counters, traces and telemetry added.

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

/// The models of a group of runs.
#[derive(Clone, Debug)]
pub struct GroupModel {
    pub kind: String,
    pub codelet: String,
    /// The model that plans, and the table that it was fitted to.
    pub planning: Trained,
    pub table: Table,
    /// The model that explains with counters and traces, or why there is none.
    pub explaining: Result<Trained, String>,
}

/// Called with the name of the fit, and the numbers of fits done and of all fits.
pub type TrainingProgress<'a> = &'a mut dyn FnMut(&str, usize, usize);

/// Fits the models of a group. `machine` is its machine's name, for messages.
///
/// # Errors
/// Rows that lack the description of their run, too few rows, and an interruption. A
/// group without an explaining model is no error.
pub fn fit(
    group: &SampleGroup,
    machine: &str,
    recipe: &Recipe,
    progress: TrainingProgress,
    stop: &AtomicBool,
) -> Result<GroupModel, TrainingError> {
    let record = |source: RecordError| TrainingError::Record {
        kind: group.kind.to_owned(),
        codelet: group.codelet.to_owned(),
        source,
    };
    let failed = |source: TrainError| match source {
        TrainError::Interrupted => TrainingError::Interrupted,
        source => TrainingError::Train {
            kind: group.kind.to_owned(),
            codelet: group.codelet.to_owned(),
            machine: machine.to_owned(),
            source: Box::new(source),
        },
    };
    let what = format!("{} {}", group.kind, group.codelet);
    let table = planning(&group.samples).map_err(record)?;
    let mut report = |done, fits| progress(&what, done, fits);
    let half = Recipe {
        deadline: recipe.deadline.map(|end| part(end, 2)),
        ..recipe.clone()
    };
    let planning = train(&table, &half, &mut report, stop).map_err(failed)?;
    let explaining = match explaining(&group.samples, &table) {
        None => Err("the runs have no counters, traces or telemetry".to_owned()),
        Some(table) => {
            let what = format!("{what}, with counters");
            let mut report = |done, fits| progress(&what, done, fits);
            match train(&table, recipe, &mut report, stop) {
                Err(TrainError::Interrupted) => return Err(TrainingError::Interrupted),
                trained => trained.map_err(|error| error.to_string()),
            }
        }
    };
    Ok(GroupModel {
        kind: group.kind.to_owned(),
        codelet: group.codelet.to_owned(),
        planning,
        table,
        explaining,
    })
}

impl GroupModel {
    /// The entry of the model file.
    pub fn entry(&self) -> CodeletModel {
        CodeletModel {
            kind: self.kind.clone(),
            codelet: self.codelet.clone(),
            rows: self.planning.validation.rows,
            configurations: self.planning.validation.groups,
            ranges: ranges(&self.table),
            fitted: self.planning.fitted.clone(),
            validation: kept(&self.planning.validation),
            explaining: self.explaining.as_ref().ok().map(|trained| Explaining {
                fitted: trained.fitted.clone(),
                validation: kept(&trained.validation),
            }),
        }
    }
}

/// The part of a validation that a file keeps: without the folds of candidates that
/// were not chosen, which would be most of the file.
fn kept(validation: &Validation) -> Validation {
    let mut kept = validation.clone();
    for (place, candidate) in kept.candidates.iter_mut().enumerate() {
        if place != kept.chosen {
            candidate.folds = Vec::new();
        }
    }
    kept
}

/// The range of every feature except the prior's terms, which follow from the others.
fn ranges(table: &Table) -> BTreeMap<String, Range> {
    (table.names.iter().enumerate())
        .filter(|(_, name)| Feature::parse(name).is_ok())
        .filter_map(|(column, name)| {
            let values = table.rows.iter().map(|row| row.values[column]);
            Some((name.clone(), Range::of(values)?))
        })
        .collect()
}

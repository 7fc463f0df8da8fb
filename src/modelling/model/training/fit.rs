//! The models of one group of runs.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use pdawl_profiler::Table;
use pdawl_profiler::bundle::{CodeletModel, Explaining, Range};
use pdawl_profiler::dataset::Feature;
use pdawl_profiler::train::{Recipe, TrainError, Trained, Validation, train};

use super::{SampleGroup, TrainingError, part, tables};
use crate::model::RecordError;

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
    let table = tables::planning(&group.samples).map_err(record)?;
    let mut report = |done, fits| progress(&what, done, fits);
    let half = Recipe {
        deadline: recipe.deadline.map(|end| part(end, 2)),
        ..recipe.clone()
    };
    let planning = train(&table, &half, &mut report, stop).map_err(failed)?;
    let explaining = match tables::explaining(&group.samples, &table) {
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

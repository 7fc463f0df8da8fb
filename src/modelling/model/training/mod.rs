//! From a machine's samples to the models of a bundle.
//!
//! [`groups`] sorts samples by kind of device and codelet; each group gets
//! models of its own. [`tables`] turns a group's samples into the numbers that models
//! are fitted to: once with the figures known before a run, for the model that plans,
//! and once with counters, traces and telemetry added, for the model that explains.
//! [`fit`](mod@fit) fits both, and [`ModelDescription::bundle`] puts all groups' models into
//! one file's content.

pub mod fit;
#[cfg(test)]
pub(super) mod fixtures;
pub mod tables;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use pdawl_profiler::Sample;
use pdawl_profiler::bundle::{Adapted, Bundle, CodeletModel};
use pdawl_profiler::dataset::Provenance;
use pdawl_profiler::train::{Recipe, TrainError};
use thiserror::Error;

pub use fit::{GroupModel, TrainingProgress, fit};

use super::RecordError;
use super::command::profile;
use crate::machine::MachineFile;

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

//! The report of a training, `pdawl-train/2`, and how people read it.

use std::fmt::{self, Write};

use pdawl_profiler::train::Validation;
use schemars::JsonSchema;
use serde::Serialize;

use super::model::{Subject, heading, write_validation};
use super::style::{line, notes, origin, written};
use crate::quantity::Seconds;

/// A training. Errors are fractions: 0.02 is 2 %.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct TrainingReport {
    /// The model's name, and the file that it is kept in.
    pub model: String,
    pub file: String,
    pub machine: String,
    pub simulated: bool,
    /// Null if the machine is no particular one.
    pub fingerprint: Option<String>,
    /// The file of the runs that were learned, how many there are, and how many
    /// of them were measured now.
    pub dataset: String,
    pub rows: usize,
    pub measured_now: usize,
    /// Of folds, forests and the order of runs.
    pub seed: u64,
    /// Seconds of fitting, without profiling.
    pub seconds: f64,
    pub groups: Vec<GroupReport>,
    pub notes: Vec<String>,
}

/// The models of a codelet on a kind of device.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct GroupReport {
    /// `cpu` or `gpu`.
    pub kind: String,
    pub codelet: String,
    /// Of the model that plans.
    pub planning: ModelReport,
    /// Of the one that explains; null, and why, if there is none.
    pub explaining: Option<ModelReport>,
    pub explaining_missing: Option<String>,
}

/// A model, and how it was chosen.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ModelReport {
    /// The features that it uses.
    pub inputs: Vec<String>,
    pub validation: Validation,
}

impl TrainingReport {
    /// The report with ANSI styles.
    pub fn render(&self) -> String {
        written(|out| self.write(out))
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        heading(out, &self.model, &self.machine, self.simulated)?;
        for group in &self.groups {
            group.write(self.simulated, out)?;
        }
        let rows = format!(
            "{} runs in {}, {} of them measured now{}",
            self.rows,
            self.dataset,
            self.measured_now,
            origin(self.simulated)
        );
        line(out, "Learned", rows)?;
        line(out, "Fitted in", Seconds(self.seconds))?;
        line(out, "Kept in", &self.file)?;
        notes(out, &self.notes)
    }
}

impl GroupReport {
    fn write(&self, simulated: bool, out: &mut String) -> fmt::Result {
        let models = [
            (false, Some(&self.planning)),
            (true, self.explaining.as_ref()),
        ];
        for (explains, model) in models {
            let Some(model) = model else { continue };
            let subject = Subject {
                kind: &self.kind,
                codelet: &self.codelet,
                explains,
                simulated,
                inputs: model.inputs.iter().map(String::as_str).collect(),
            };
            write_validation(&model.validation, &subject, out)?;
            writeln!(out)?;
        }
        match &self.explaining_missing {
            Some(why) => writeln!(
                out,
                "  no model with counters of {} on {}: {why}\n",
                self.codelet, self.kind
            ),
            None => Ok(()),
        }
    }
}

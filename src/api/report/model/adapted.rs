//! The report of an adaptation: `pdawl-model-adapt/1`.

use std::fmt::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;

use super::percent;
use crate::quantity::Seconds;
use crate::report::style::{FAINT, STRONG, column, line, notes, origin, styled, written};
use crate::report::table;

/// A foreign model, corrected by calibration runs. Errors are fractions: 0.02
/// is 2 %.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct AdaptReport {
    /// The foreign model, and the machine that it was of.
    pub foreign: String,
    pub foreign_machine: String,
    /// The adapted model, and the file that it is kept in.
    pub model: String,
    pub file: String,
    pub machine: String,
    pub simulated: bool,
    pub groups: Vec<AdaptedGroup>,
    pub notes: Vec<String>,
}

/// A codelet on a kind of device.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct AdaptedGroup {
    pub kind: String,
    pub codelet: String,
    pub runs: Vec<CalibrationRun>,
    /// Mean absolute errors of the calibration runs: by the foreign model, by
    /// the corrected one, and by corrections that each were fitted without the
    /// run that they predict.
    pub before: f64,
    pub after: f64,
    pub left_out: f64,
}

/// A calibration run, in seconds of a step.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct CalibrationRun {
    pub configuration: String,
    pub measured: f64,
    pub before: f64,
    pub after: f64,
    pub left_out: f64,
}

impl AdaptReport {
    /// The report with ANSI styles.
    pub fn render(&self) -> String {
        written(|out| self.write(out))
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(
            out,
            "model {} of {}, adapted from {} of {}{}\n",
            styled(STRONG, &self.model),
            styled(STRONG, &self.machine),
            self.foreign,
            self.foreign_machine,
            origin(self.simulated),
        )?;
        for group in &self.groups {
            group.write(self.simulated, out)?;
        }
        line(out, "Kept in", &self.file)?;
        notes(out, &self.notes)
    }
}

impl AdaptedGroup {
    fn write(&self, simulated: bool, out: &mut String) -> fmt::Result {
        let name = format!("{} {}", self.kind, self.codelet);
        writeln!(
            out,
            "{}: {} calibration runs",
            styled(STRONG, name),
            self.runs.len()
        )?;
        let step = column("Step", simulated);
        let header = ["Run", &step, "Before", "After", "Left out"];
        let mut table = table::plain(&header, |column| column > 0);
        for run in &self.runs {
            let off = |predicted: f64| percent(predicted / run.measured - 1.0);
            table.add_row(vec![
                run.configuration.clone(),
                Seconds(run.measured).to_string(),
                off(run.before),
                off(run.after),
                off(run.left_out),
            ]);
        }
        let mean = |error: f64| percent(error);
        table.add_row(vec![
            "mean of the errors' sizes".to_owned(),
            String::new(),
            mean(self.before),
            mean(self.after),
            mean(self.left_out),
        ]);
        writeln!(out, "{}", table.trim_fmt())?;
        let said = "left out: predicted by a correction that was fitted to the other runs";
        writeln!(out, "  {}\n", styled(FAINT, said))
    }
}

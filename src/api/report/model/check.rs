//! The report of a check of a model: `pdawl-model-check/1`.

use std::fmt::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;

use super::{date, heading, percent};
use crate::model::evaluate::Evaluation;
use crate::report::style::{ALARM, FAINT, MAIN, STRONG, column, line, origin, styled, written};
use crate::report::table;

/// A model that could be read: damaged files and those of newer versions are refused
/// before. Errors are fractions: 0.02 is 2 %.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct CheckReport {
    pub model: String,
    pub file: String,
    /// Of the file's format, such as `pdawl-model/1`.
    pub format: &'static str,
    /// Of the file, which is intact.
    pub checksum: String,
    /// The version of the program that trained it, and when: seconds since
    /// 1970 in UTC.
    pub version: String,
    pub trained_at: u64,
    pub machine: String,
    pub simulated: bool,
    /// The machine that it was checked for, whether it fits, and why.
    pub fits: Fit,
    /// Absent without a dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_out: Option<HeldOut>,
}

/// Whether a model is of a machine.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Fit {
    pub machine: String,
    pub fits: bool,
    pub why: String,
}

/// A model on a dataset's runs.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct HeldOut {
    pub dataset: String,
    pub machine: String,
    pub simulated: bool,
    pub groups: Vec<Evaluation>,
}

impl CheckReport {
    /// The report with ANSI styles.
    pub fn render(&self) -> String {
        written(|out| self.write(out))
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        heading(out, &self.model, &self.machine, self.simulated)?;
        line(out, "File", &self.file)?;
        line(
            out,
            "Format",
            format!("{}, as this program writes it", self.format),
        )?;
        line(
            out,
            "Checksum",
            format!("{}, as its content has it", &self.checksum[..12]),
        )?;
        line(
            out,
            "Trained",
            format!("{} by pdawl {}", date(self.trained_at), self.version),
        )?;
        let verdict = match self.fits.fits {
            true => styled(MAIN, "fits"),
            false => styled(ALARM, "does not fit"),
        };
        line(
            out,
            "Machine",
            format!("{verdict} {}: {}", self.fits.machine, self.fits.why),
        )?;
        match &self.held_out {
            Some(held_out) => held_out.write(out),
            None => Ok(()),
        }
    }
}

impl HeldOut {
    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(
            out,
            "\npredicted from what is known before a run: {} of {}{}",
            styled(STRONG, &self.dataset),
            styled(STRONG, &self.machine),
            origin(self.simulated)
        )?;
        let mape = column("MAPE", self.simulated);
        let mut header = vec!["Of", "Runs", &mape, "Median", "Worst"];
        let baselines = self
            .groups
            .first()
            .map_or(&[][..], |group| &group.baselines);
        header.extend(baselines.iter().map(|baseline| baseline.name.as_str()));
        header.push("Outside");
        let mut table = table::plain(&header, |column| column > 0);
        for group in &self.groups {
            let mut row = vec![
                format!("{} on {}", group.codelet, group.kind),
                group.rows.to_string(),
                percent(group.model.mape),
                percent(group.model.median),
                percent(group.model.greatest),
            ];
            let others = group.baselines.iter();
            row.extend(others.map(|other| percent(other.accuracy.mape)));
            row.push(group.outside.to_string());
            table.add_row(row);
        }
        writeln!(out, "{}", table.trim_fmt())?;
        for group in &self.groups {
            if group.configurations < group.rows {
                writeln!(out, "  {}", medians(group))?;
            }
        }
        for group in self.groups.iter().filter(|group| group.outside > 0) {
            let mut by: Vec<(&String, &usize)> = group.outside_by.iter().collect();
            by.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
            let most: Vec<String> = (by.iter().take(3))
                .map(|(name, rows)| format!("{name} ({rows})"))
                .collect();
            let outside = format!(
                "{} on {}: {} of {} runs are outside of the training's ranges, most by {}",
                group.codelet,
                group.kind,
                group.outside,
                group.rows,
                most.join(", ")
            );
            writeln!(out, "  {}", styled(FAINT, outside))?;
        }
        Ok(())
    }
}

/// How near a group's predictions come to the medians of configurations.
fn medians(group: &Evaluation) -> String {
    let baselines: Vec<String> = (group.medians.baselines.iter())
        .map(|baseline| format!("{} {}", baseline.name, percent(baseline.accuracy.mape)))
        .collect();
    format!(
        "{} on {}: {} off the medians of {} configurations ({}); single runs are {} off them",
        group.codelet,
        group.kind,
        percent(group.medians.model.mape),
        group.configurations,
        baselines.join(", "),
        percent(group.medians.noise)
    )
}

//! The report of a profile, `pdawl-profile/1`, and how people read it.

use std::fmt::{self, Write};

use pdawl_profiler::counters::Availability;
use pdawl_profiler::{Sample, counters};
use schemars::JsonSchema;
use serde::Serialize;

use super::style::{ALARM, STRONG, line, note, notes, origin, styled, written};
use crate::quantity::{Count, Seconds};

/// A profile. Its rows are in the file `dataset`; datasets.md describes it.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ProfileReport {
    pub machine: String,
    pub simulated: bool,
    pub codelet: String,
    /// The file of the rows.
    pub dataset: String,
    pub rows: Rows,
    /// Wall time, and its limit.
    pub seconds: f64,
    pub budget_seconds: f64,
    pub interrupted: bool,
    pub kinds: Vec<KindReport>,
    /// What can be counted here; null for a simulated machine.
    pub counters: Option<Availability>,
    /// Runs that failed, and why.
    pub failed: Vec<String>,
    pub notes: Vec<String>,
}

/// The numbers of runs by outcome.
#[derive(Clone, Copy, Debug, Default, JsonSchema, Serialize)]
pub struct Rows {
    /// Now.
    pub measured: usize,
    /// Earlier, and not again.
    pub kept: usize,
    /// Not measured: there was no time, or it was interrupted.
    pub left: usize,
    /// The list `failed` says why.
    pub failed: usize,
}

/// The dataset's rows of the profiled codelet on a kind of device.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct KindReport {
    /// `cpu` or `gpu`.
    pub kind: String,
    pub rows: usize,
    pub configurations: usize,
    /// Points of the smallest grid and of the largest.
    pub least_points: f64,
    pub greatest_points: f64,
}

impl KindReport {
    /// One entry a kind that there are rows of.
    pub fn of(samples: &[Sample], codelet: &str) -> Vec<Self> {
        ["cpu", "gpu"]
            .iter()
            .filter_map(|kind| {
                let mine = || {
                    let it = samples.iter();
                    it.filter(|s| s.kind == *kind && s.codelet == codelet)
                };
                let mut configurations: Vec<&str> =
                    mine().map(|s| s.configuration.as_str()).collect();
                let rows = configurations.len();
                configurations.sort_unstable();
                configurations.dedup();
                let points = || mine().map(points);
                (rows > 0).then(|| Self {
                    kind: (*kind).to_owned(),
                    rows,
                    configurations: configurations.len(),
                    least_points: points().fold(f64::INFINITY, f64::min),
                    greatest_points: points().fold(0.0, f64::max),
                })
            })
            .collect()
    }
}

/// Points of a row's grid.
fn points(sample: &Sample) -> f64 {
    let feature = |name: &str| sample.features.get(name).copied().unwrap_or(0.0);
    feature("known.units_count") * feature("known.unit_points_count")
}

impl ProfileReport {
    /// The report with ANSI styles.
    pub fn render(&self) -> String {
        written(|out| self.write(out))
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(
            out,
            "profile of {} on {}{}\n",
            styled(STRONG, &self.codelet),
            styled(STRONG, &self.machine),
            origin(self.simulated)
        )?;
        let Rows {
            measured,
            kept,
            left,
            failed,
        } = self.rows;
        let mut rows = format!("{measured} measured, {kept} kept from before, {left} left");
        if failed > 0 {
            rows.push_str(&format!(", {failed} failed"));
        }
        line(out, "Rows", rows)?;
        for kind in &self.kinds {
            let text = format!(
                "{} rows of {} configurations, {} to {}",
                kind.rows,
                kind.configurations,
                Count(kind.least_points, "point"),
                Count(kind.greatest_points, "point")
            );
            line(out, &kind.kind, text)?;
        }
        self.write_counters(out)?;
        let time = format!(
            "{} of a budget of {}",
            Seconds(self.seconds),
            Seconds(self.budget_seconds)
        );
        line(out, "Time", time)?;
        match self.kinds.is_empty() {
            true => line(out, "Kept in", "nothing was measured, so there is no file")?,
            false => line(out, "Kept in", &self.dataset)?,
        }
        if self.interrupted {
            writeln!(
                out,
                "{} on request; the same command goes on from here",
                styled(ALARM, "Interrupted")
            )?;
        } else if left > 0 {
            let said = "the same command goes on from here";
            note(
                out,
                format!("the budget was too small for {left} runs; {said}"),
            )?;
        }
        for why in &self.failed {
            writeln!(out, "{} {why}", styled(ALARM, "Failed:"))?;
        }
        notes(out, &self.notes)
    }

    fn write_counters(&self, out: &mut String) -> fmt::Result {
        let Some(counters) = &self.counters else {
            return line(out, "Counters", "none: a simulated machine has no counters");
        };
        line(out, "Counters", counters.source)?;
        if counters.source == counters::Source::Hardware {
            return Ok(());
        }
        for missing in &counters.missing {
            line(out, "  missing", &missing.why)?;
            line(out, "  remedy", &missing.remedy)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(kind: &str, codelet: &str, configuration: &str, units: f64) -> Sample {
        let features = [
            ("known.units_count", units),
            ("known.unit_points_count", 10.0),
        ];
        Sample {
            machine: "k40".into(),
            simulated: true,
            device: "host:1".into(),
            kind: kind.into(),
            codelet: codelet.into(),
            configuration: configuration.into(),
            repeat: 0,
            counters: "none".into(),
            steps: 1,
            seconds: 1.0,
            features: features.map(|(name, value)| (name.into(), value)).into(),
        }
    }

    #[test]
    fn kinds_are_counted_separately_and_other_codelets_not() {
        let samples = [
            sample("gpu", "a", "x", 3.0),
            sample("gpu", "a", "x", 3.0),
            sample("gpu", "a", "y", 700.0),
            sample("gpu", "b", "y", 1.0),
            sample("cpu", "b", "y", 1.0),
        ];
        let expected = KindReport {
            kind: "gpu".into(),
            rows: 3,
            configurations: 2,
            least_points: 30.0,
            greatest_points: 7000.0,
        };
        assert_eq!(KindReport::of(&samples, "a"), [expected]);
        assert_eq!(KindReport::of(&samples, "b").len(), 2);
        assert_eq!(KindReport::of(&[], "a"), []);
    }

    #[test]
    fn the_text_says_what_was_done_and_how_to_go_on() {
        let mut report = ProfileReport {
            machine: "k40".into(),
            simulated: true,
            codelet: "stencil5-f64".into(),
            dataset: "k40.csv".into(),
            rows: Rows {
                measured: 2,
                kept: 1,
                left: 5,
                failed: 0,
            },
            seconds: 1.5,
            budget_seconds: 60.0,
            interrupted: false,
            kinds: KindReport::of(&[sample("gpu", "stencil5-f64", "x", 3.0)], "stencil5-f64"),
            counters: None,
            failed: Vec::new(),
            notes: Vec::new(),
        };
        let plain =
            |report: &ProfileReport| anstream::adapter::strip_str(&report.render()).to_string();
        let text = plain(&report);
        for part in [
            "profile of stencil5-f64 on k40 simulated",
            "Rows        2 measured, 1 kept from before, 5 left\n",
            "gpu         1 rows of 1 configurations, 30.0 point to 30.0 point",
            "Time        1.50 s of a budget of 60.0 s",
            "too small for 5 runs; the same command goes on",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        report.interrupted = true;
        report.kinds.clear();
        let text = plain(&report);
        assert!(text.contains("Interrupted on request; the same command goes on"));
        assert!(text.contains("there is no file") && !text.contains("k40.csv"));
    }
}

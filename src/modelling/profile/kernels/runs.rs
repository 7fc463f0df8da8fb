//! What runs took, by the devices that took part, kept from run to run: what was measured
//! outranks what is expected.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::KernelTimes;

/// A part that was not tried must be expected to take less than this part of the best one's time.
const PAYS: f64 = 0.97;
/// Where a part took so many times what was expected, or was expected to take so many times what it
/// took, others that are expected to take at most so many times the best one's time are tried, too.
const ERRS: f64 = 1.25;
/// One run of so many tries the part that may be next best, if it is expected to cost no more than
/// this part of the run.
const RARELY: u64 = 20;
const COSTS: f64 = 0.05;
/// Runs from which on nothing but what was measured counts: fewer may all have been disturbed.
const ENOUGH: u64 = 3;
/// Parts of a kind of run at most.
const PARTS: usize = 32;

/// What is known of runs of one kind.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRow {
    /// Runs that were measured.
    pub runs: u64,
    /// Rows with greater numbers were measured later.
    pub latest: u64,
    /// By the devices that took part, and their steps between two barriers: `gpu0,host:16 x8`.
    pub parts: BTreeMap<String, PartRow>,
}

/// What is known of runs of one kind on some devices.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartRow {
    /// Seconds that were expected before any run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<f64>,
    /// Seconds of a run, or of a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<KernelTimes>,
    /// Of steps: the units that each device held and took from the pool in the last one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, [u64; 2]>,
}

/// A run that ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    /// The devices that took part.
    pub part: String,
    /// Seconds of it, or of a step.
    pub seconds: f64,
    /// See [`PartRow::units`].
    pub units: BTreeMap<String, [u64; 2]>,
    /// What parts were expected to take.
    pub expected: Vec<(String, f64)>,
    /// The part that was chosen at first, if it did not keep the work.
    pub left: Option<String>,
}

/// What a run begins with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownPart<'a> {
    pub part: &'a str,
    pub row: &'a PartRow,
    /// The seconds that are expected of it.
    pub seconds: f64,
}

impl<'a> KnownPart<'a> {
    fn of((part, row): (&'a String, &'a PartRow), seconds: f64) -> Self {
        Self { part, row, seconds }
    }
}

impl PartRow {
    /// The least of the last seconds.
    pub fn least(&self) -> Option<f64> {
        self.times.as_ref().map(KernelTimes::least)
    }

    /// Runs that were measured since times changed.
    pub fn count(&self) -> u64 {
        self.times.as_ref().map_or(0, KernelTimes::count)
    }

    /// Whether it took much longer than was expected, or much less.
    fn is_misjudged(&self) -> bool {
        let both = self.expected.zip(self.least());
        both.is_some_and(|(expected, least)| least > ERRS * expected || expected > ERRS * least)
    }

    fn is_valid(&self) -> bool {
        let expected = self.expected.is_none_or(|s| s >= 0.0 && s.is_finite());
        expected && self.times.as_ref().is_none_or(KernelTimes::is_valid)
    }
}

impl RunRow {
    /// The part of the possible ones with which the next run begins: the one that was fastest, or
    /// one that may be faster. What disturbs a run makes it slower, so the least of the last times
    /// counts.
    pub fn choice(&self, is_possible: impl Fn(&str) -> bool) -> Option<KnownPart<'_>> {
        let parts = self.parts.iter().filter(|(part, _)| is_possible(part));
        let measured = (parts.clone())
            .filter_map(|(part, row)| Some(KnownPart::of((part, row), row.least()?)));
        let best = measured.min_by(|one, other| one.seconds.total_cmp(&other.seconds))?;
        let others = parts.filter(|(part, _)| *part != best.part);
        let others = others.map(|(part, row)| {
            let expected = row.expected.unwrap_or(f64::INFINITY);
            let measured = row.least().unwrap_or(f64::INFINITY);
            let seconds = match row.count() {
                ENOUGH.. => measured,
                _ => measured.min(expected),
            };
            KnownPart::of((part, row), seconds)
        });
        let least = |one: &KnownPart, other: &KnownPart| one.seconds.total_cmp(&other.seconds);
        let untried = others.clone().filter(|of| of.row.count() == 0);
        let untried = untried.min_by(least);
        let is_due = self.runs % RARELY == RARELY - 1;
        let tried = untried.filter(|of| of.seconds < self.pays() * best.seconds);
        let tried = tried.or_else(|| {
            let next = others.min_by(least).filter(|_| is_due);
            next.filter(|next| next.seconds <= (1.0 + COSTS) * best.seconds)
        });
        Some(tried.unwrap_or(best))
    }

    /// What was not tried must be expected to take less than so many times the best one's time.
    fn pays(&self) -> f64 {
        match self.parts.values().any(PartRow::is_misjudged) {
            true => ERRS,
            false => PAYS,
        }
    }

    pub(super) fn record(&mut self, record: &RunRecord) {
        self.runs += 1;
        for (part, seconds) in &record.expected {
            self.parts.entry(part.clone()).or_default().expected = Some(*seconds);
        }
        let part = self.parts.entry(record.part.clone()).or_default();
        part.times.get_or_insert_default().record(record.seconds);
        part.units.clone_from(&record.units);
        if let Some(left) = &record.left {
            // It was no faster, or it would have been kept to.
            let left = self.parts.entry(left.clone()).or_default();
            left.times.get_or_insert_default().record(record.seconds);
        }
        while self.parts.len() > PARTS {
            let least = self.parts.iter().min_by_key(|(_, row)| row.count());
            let Some(least) = least.map(|(part, _)| part.clone()) else {
                break;
            };
            self.parts.remove(&least);
        }
    }

    pub(super) fn is_valid(&self) -> bool {
        self.parts.values().all(PartRow::is_valid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(part: &str, seconds: f64, expected: &[(&str, f64)]) -> RunRecord {
        RunRecord {
            part: part.to_owned(),
            seconds,
            units: BTreeMap::new(),
            expected: (expected.iter())
                .map(|(part, seconds)| ((*part).to_owned(), *seconds))
                .collect(),
            left: None,
        }
    }

    /// The parts of so many runs, of which each takes what `seconds` says.
    fn chosen(row: &mut RunRow, runs: usize, seconds: impl Fn(&str) -> f64) -> Vec<String> {
        let run = |_| {
            let part = row.choice(|_| true).expect("a part").part.to_owned();
            row.record(&ran(&part, seconds(&part), &[]));
            part
        };
        (0..runs).map(run).collect()
    }

    #[test]
    fn parts_are_tried_that_are_expected_to_be_faster_than_the_fastest_was() {
        let expected = [("gpu", 2.0), ("gpu,host", 1.0), ("host", 9.0)];
        let mut row = RunRow::default();
        assert_eq!(row.choice(|_| true), None);
        row.record(&ran("gpu,host", 4.0, &expected));
        let seconds = |part: &str| if part == "gpu" { 2.1 } else { 4.0 };
        assert_eq!(chosen(&mut row, 3, seconds), ["gpu"; 3]);
        // Only of what is there.
        let part = row.choice(|part| part != "gpu").map(|known| known.part);
        assert_eq!(part, Some("gpu,host"));
        // One that was no faster than another one hides none that was not tried.
        let mut row = RunRow::default();
        let expected = [
            ("gpus,host", 5.2),
            ("gpus", 5.4),
            ("gpu", 8.2),
            ("host", 90.0),
        ];
        row.record(&ran("gpus,host", 27.3, &expected));
        let seconds = |part: &str| match part {
            "gpus,host" => 27.3,
            "gpus" => 27.0,
            _ => 26.0,
        };
        let parts = chosen(&mut row, 12, seconds);
        assert_eq!(parts[..2], ["gpus", "gpu"]);
        assert!(parts[2..].iter().all(|part| part == "gpu"), "{parts:?}");
        // What was misjudged may be so in both directions.
        let mut row = RunRow::default();
        row.record(&ran(
            "gpus",
            6.6,
            &[("gpus", 4.5), ("gpu", 7.2), ("host", 9.0)],
        ));
        let seconds = |part: &str| if part == "gpu" { 5.0 } else { 6.6 };
        assert_eq!(chosen(&mut row, 3, seconds), ["gpu"; 3]);
        // One that was no faster is not tried again.
        let mut row = RunRow::default();
        row.record(&ran("gpu", 1.3, &[("gpu", 1.0), ("gpu,host", 1.1)]));
        let seconds = |part: &str| if part == "gpu" { 1.3 } else { 1.5 };
        let parts = chosen(&mut row, 18, seconds);
        assert_eq!(parts[0], "gpu,host");
        assert!(parts[1..].iter().all(|part| part == "gpu"), "{parts:?}");
    }

    #[test]
    fn one_run_in_twenty_tries_what_may_be_as_fast() {
        let mut row = RunRow::default();
        row.record(&ran(
            "gpu",
            1.0,
            &[("gpu", 1.0), ("gpu,host", 1.02), ("host", 3.0)],
        ));
        let parts = chosen(&mut row, 100, |part| if part == "gpu" { 1.0 } else { 1.04 });
        let tried = parts.iter().filter(|part| *part == "gpu,host").count();
        assert_eq!((tried, parts.contains(&"host".to_owned())), (5, false));
    }

    #[test]
    fn a_disturbed_run_is_found_out() {
        let mut row = RunRow::default();
        // The best one's only run took three times as long as it should.
        row.record(&ran("gpu", 3.0, &[("gpu", 1.0), ("gpu,host", 1.1)]));
        let seconds = |part: &str| if part == "gpu" { 1.0 } else { 1.2 };
        let parts = chosen(&mut row, 40, seconds);
        assert_eq!(parts[1], "gpu,host");
        assert_eq!(parts[39], "gpu", "{parts:?}");
    }

    #[test]
    fn parts_are_bounded() {
        let mut row = RunRow::default();
        for part in 0..100 {
            row.record(&ran(&part.to_string(), 1.0, &[]));
        }
        assert_eq!((row.parts.len(), row.runs), (PARTS, 100));
    }
}

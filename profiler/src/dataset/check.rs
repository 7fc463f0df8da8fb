//! Checks of runs: impossible values are refused, both when they are read and when they
//! are written.

use std::collections::HashMap;

use super::Fault;
use super::row::{Feature, Group};
use crate::Sample;

/// Figures known beforehand that are at least 1.
const AT_LEAST_ONE: [&str; 8] = [
    "known.units_count",
    "known.unit_bytes",
    "known.unit_points_count",
    "known.element_bytes",
    "known.dimensions_count",
    "known.workers_count",
    "machine.cores_count",
    "machine.sockets_count",
];

/// Checks every value of a run.
pub(super) fn check(sample: &Sample) -> Result<(), Fault> {
    text("machine", &sample.machine)?;
    text("device", &sample.device)?;
    one_of("kind", &sample.kind, &["cpu", "gpu"])?;
    text("codelet", &sample.codelet)?;
    text("configuration", &sample.configuration)?;
    let sources = ["hardware", "software", "none"];
    one_of("counters", &sample.counters, &sources)?;
    if sample.steps == 0 {
        return Err(Fault::new(
            "steps",
            0,
            "is no run",
            "give the steps computed, at least 1",
        ));
    }
    if !(sample.seconds.is_finite() && sample.seconds > 0.0) {
        return Err(Fault::new(
            "seconds",
            sample.seconds,
            "is no time that a run takes",
            "give the seconds of all steps, above 0",
        ));
    }
    for (name, value) in &sample.features {
        let feature = Feature::parse(name).map_err(|why| Fault::new(name, name, why, RENAME))?;
        figure(&feature, *value)?;
        if feature.group() == Group::Counter && sample.counters == "none" {
            return Err(Fault::new(
                name,
                value,
                "is there although the run says that it has no counters",
                "leave the cell empty, or put `hardware` or `software` into `counters`",
            ));
        }
    }
    overlap(sample)
}

/// The remedy for an impossible figure.
const EMPTY: &str = "leave the cell empty if the figure is not known";

/// The remedy for a feature's name.
pub(super) const RENAME: &str =
    "name features `group.what_unit`, as docs/datasets.md lists them, or remove the column";

fn text(column: &str, value: &str) -> Result<(), Fault> {
    let why = if value.is_empty() {
        "is empty"
    } else if value.contains('#') {
        // Readers take what follows a `#` for a comment.
        "has a `#`"
    } else if value.chars().any(char::is_control) {
        "has a line break or another control character"
    } else if value.trim() != value {
        "begins or ends with a blank"
    } else {
        return Ok(());
    };
    Err(Fault::new(column, value, why, "give a plain name"))
}

fn one_of(column: &str, value: &str, allowed: &[&str]) -> Result<(), Fault> {
    if allowed.contains(&value) {
        return Ok(());
    }
    let allowed = allowed.join("`, `");
    Err(Fault::new(
        column,
        value,
        "is unknown",
        format!("give one of `{allowed}`"),
    ))
}

fn figure(feature: &Feature, value: f64) -> Result<(), Fault> {
    let (why, remedy) = match largest_ratio(feature) {
        _ if !value.is_finite() => ("is not finite".to_owned(), EMPTY.to_owned()),
        _ if value < 0.0 => ("is negative".to_owned(), EMPTY.to_owned()),
        _ if is_whole(feature) && value.fract() != 0.0 => {
            let remedy = format!("give a whole number of its unit, `{}`", feature.unit());
            ("is not whole".to_owned(), remedy)
        }
        _ if AT_LEAST_ONE.contains(&feature.name()) && value < 1.0 => {
            ("is too small".to_owned(), "give at least 1".to_owned())
        }
        _ if is_rate_of_machine(feature) && value == 0.0 => {
            ("is no rate of a machine".to_owned(), EMPTY.to_owned())
        }
        Some(most) if value > most => {
            let remedy = format!("give a fraction, not per cent; else {EMPTY}");
            (format!("is above {most}"), remedy)
        }
        _ => return Ok(()),
    };
    Err(Fault::new(feature.name(), value, why, remedy))
}

/// Counts of hardware events may be scaled, and what a kernel moves at least
/// may be a mean over unlike units; the rest is counted.
fn is_whole(feature: &Feature) -> bool {
    matches!(feature.group(), Group::Machine | Group::Known)
        && matches!(feature.unit(), "count" | "bytes")
        && feature.name() != "known.unit_traffic_bytes"
}

fn is_rate_of_machine(feature: &Feature) -> bool {
    let rates = ["mhz", "bytes_per_second", "flops_per_second"];
    feature.group() == Group::Machine && rates.contains(&feature.unit())
}

/// The largest value of a ratio that has one.
fn largest_ratio(feature: &Feature) -> Option<f64> {
    if feature.unit() != "ratio" || feature.name().contains("_over_") {
        return None;
    }
    // Caches may let a codelet move more than a copy does; machine files allow
    // as much.
    let efficiency = feature.group() == Group::Machine && feature.name().contains("efficiency");
    Some(if efficiency { 1.5 } else { 1.0 })
}

/// Copies cannot overlap with kernels for longer than they take.
fn overlap(sample: &Sample) -> Result<(), Fault> {
    let sum = |name: &str| sample.features.get(name).copied();
    let Some(overlap) = sum("trace.overlap_seconds") else {
        return Ok(());
    };
    let copies = sum("trace.h2d_seconds").unwrap_or(0.0) + sum("trace.d2h_seconds").unwrap_or(0.0);
    // Sums of the same times in another order may differ in their last bits.
    if overlap <= copies * (1.0 + 1e-9) {
        return Ok(());
    }
    Err(Fault::new(
        "trace.overlap_seconds",
        overlap,
        format!("is longer than all copies, {copies} s"),
        "the three sums must be of the same run; remove the row",
    ))
}

/// The key of a run: a dataset has each key once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub machine: String,
    pub device: String,
    pub codelet: String,
    pub configuration: String,
    pub repeat: u32,
}

/// The key of a run: to know whether it was measured already.
pub fn key(sample: &Sample) -> Key {
    Key {
        machine: sample.machine.clone(),
        device: sample.device.clone(),
        codelet: sample.codelet.clone(),
        configuration: sample.configuration.clone(),
        repeat: sample.repeat,
    }
}

/// The runs that were seen, each with its line.
#[derive(Debug, Default)]
pub(super) struct Runs {
    lines: HashMap<Key, usize>,
    first: Option<(bool, usize)>,
}

impl Runs {
    /// Whether a run can be added to those noted.
    ///
    /// # Errors
    /// A run that is there already; a simulated one among measured ones, or
    /// the other way round.
    pub fn fits(&self, sample: &Sample) -> Result<(), Fault> {
        if let Some((simulated, line)) = self.first
            && simulated != sample.simulated
        {
            let first = if simulated { "simulated" } else { "measured" };
            return Err(Fault::new(
                "simulated",
                sample.simulated,
                format!("differs from line {line}, which is {first}"),
                "keep simulated and measured runs in files of their own",
            ));
        }
        let Some(line) = self.lines.get(&key(sample)) else {
            return Ok(());
        };
        Err(Fault::new(
            "repeat",
            sample.repeat,
            format!(
                "stands on line {line} already, with the same machine, device, codelet and \
                 configuration"
            ),
            "remove one of the two, or give each repeat its own number",
        ))
    }

    /// Notes a run and its line.
    pub fn note(&mut self, sample: &Sample, line: usize) {
        self.first.get_or_insert((sample.simulated, line));
        self.lines.insert(key(sample), line);
    }

    pub fn contains(&self, key: &Key) -> bool {
        self.lines.contains_key(key)
    }
}

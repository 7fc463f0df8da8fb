//! Checks of runs: impossible values are refused, both when they are read and when they
//! are written.

use super::Fault;
use super::feature::{Feature, Group, Unit};
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
        let feature =
            Feature::parse(name).map_err(|why| Fault::new(name, name, why.to_string(), RENAME))?;
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
    let fault =
        |why: String, remedy: &str| Err(Fault::new(feature.name(), value, why, remedy.to_owned()));
    if !value.is_finite() {
        return fault(
            "is not finite".into(),
            "leave the cell empty if the figure is not known",
        );
    }
    if value < 0.0 {
        return fault(
            "is negative".into(),
            "leave the cell empty if the figure is not known",
        );
    }
    if is_whole(feature) && value.fract() != 0.0 {
        let unit = feature.unit().name();
        return fault(
            "is not whole".into(),
            &format!("give a whole number of its unit, `{unit}`"),
        );
    }
    if AT_LEAST_ONE.contains(&feature.name()) && value < 1.0 {
        return fault("is too small".into(), "give at least 1");
    }
    if is_rate_of_machine(feature) && value == 0.0 {
        return fault(
            "is no rate of a machine".into(),
            "leave the cell empty if the rate is not known",
        );
    }
    match largest_ratio(feature) {
        Some(most) if value > most => fault(
            format!("is above {most}"),
            "give a fraction, not per cent; leave the cell empty if it is not known",
        ),
        _ => Ok(()),
    }
}

/// Counts of hardware events may be scaled, and what a kernel moves at least
/// may be a mean over unlike units; the rest is counted.
fn is_whole(feature: &Feature) -> bool {
    matches!(feature.group(), Group::Machine | Group::Known)
        && matches!(feature.unit(), Unit::Count | Unit::Bytes)
        && feature.name() != "known.unit_traffic_bytes"
}

fn is_rate_of_machine(feature: &Feature) -> bool {
    feature.group() == Group::Machine
        && matches!(
            feature.unit(),
            Unit::Mhz | Unit::BytesPerSecond | Unit::FlopsPerSecond
        )
}

/// The largest value of a ratio that has one.
fn largest_ratio(feature: &Feature) -> Option<f64> {
    if feature.unit() != Unit::Ratio || feature.name().contains("_over_") {
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

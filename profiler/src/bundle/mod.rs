//! Model files: one JSON file with everything that a prediction on another machine
//! needs, and everything that says how far to believe it.
//!
//! The first keys are `format`, always [`FORMAT`], and `checksum`, the SHA-256
//! of everything else in a canonical form (keys sorted, no blanks), so that
//! reformatting a file changes nothing and any other change is noticed.
//!
//! * A [`Bundle`] has an [`CodeletModel`] for each kind of device and codelet.
//! * `file` reads and writes it; [`BundleError`] says what is wrong with a file, and what
//!   to do, also with values that no training gives.

mod file;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use file::{BundleError, FORMAT};

use crate::dataset::{Feature, Provenance};
use crate::fitted::Fitted;
use crate::train::Validation;
use crate::validate::Accuracy;

/// A machine's models. In a file, unknown members, missing ones and a wrong checksum are
/// errors.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    /// What users call it.
    pub name: String,
    /// The version of the program that trained it.
    pub version: String,
    /// The machine that was profiled.
    pub machine: String,
    /// Whether the times that it learned are virtual.
    pub simulated: bool,
    /// The machine's fingerprint, if it is a particular one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// When it was trained: seconds since 1970 in UTC.
    pub trained_at: u64,
    /// Where the runs come from that it learned: pairs of a key and a value.
    pub provenance: Provenance,
    /// What a model for another machine was corrected from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapted: Option<Adapted>,
    /// The machine's description, in the form of the program that trained the model.
    pub machine_file: Value,
    /// One for each kind of device and codelet.
    pub models: Vec<CodeletModel>,
}

impl Bundle {
    /// The model of a kind of device (`cpu` or `gpu`) and a codelet.
    pub fn find(&self, kind: &str, codelet: &str) -> Option<&CodeletModel> {
        (self.models.iter()).find(|entry| entry.kind == kind && entry.codelet == codelet)
    }
}

/// The model of a codelet on a kind of device.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeletModel {
    /// `cpu` or `gpu`.
    pub kind: String,
    pub codelet: String,
    /// Runs that it learned, and how many configurations they were of.
    pub rows: usize,
    pub configurations: usize,
    /// Of every feature that was known before these runs, whether the model
    /// uses it or not: what is outside was never seen.
    pub ranges: BTreeMap<String, Range>,
    /// Predicts the seconds of a step from what is known beforehand.
    pub fitted: Fitted,
    /// How it was chosen, and how good it is.
    pub validation: Validation,
    /// A model that uses counters and traces as well, where runs had them: not for
    /// planning, but to show what the time depends on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explaining: Option<Explaining>,
}

/// A model that needs a run's counters.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Explaining {
    pub fitted: Fitted,
    pub validation: Validation,
}

/// The values of a feature in the training, in its own unit.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    pub min: f64,
    pub max: f64,
}

impl Range {
    /// The range of some values; `None` of none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let range = |range: Option<Self>, value: f64| match range {
            None => Some(Self {
                min: value,
                max: value,
            }),
            Some(range) => Some(Self {
                min: range.min.min(value),
                max: range.max.max(value),
            }),
        };
        values.into_iter().fold(None, range)
    }

    /// Whether the training saw values on both sides.
    pub fn holds(&self, value: f64) -> bool {
        self.min <= value && value <= self.max
    }
}

/// What a model for another machine was corrected from.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adapted {
    /// The machine whose model it was.
    pub machine: String,
    /// The checksum of that model's file.
    pub checksum: String,
    /// Calibration runs on the machine that it is for now.
    pub runs: usize,
}

/// Where something is wrong, and what, as in `is empty`.
type Wrong = (String, String);

/// Checks what the types do not.
fn check(bundle: &Bundle) -> Result<(), Wrong> {
    text("name", &bundle.name)?;
    text("version", &bundle.version)?;
    text("machine", &bundle.machine)?;
    if let Some(fingerprint) = &bundle.fingerprint {
        text("fingerprint", fingerprint)?;
    }
    if let Some(adapted) = &bundle.adapted {
        text("adapted.machine", &adapted.machine)?;
        let hexadecimal = adapted.checksum.chars().all(|c| c.is_ascii_hexdigit());
        let is_one = hexadecimal && adapted.checksum.len() == 64;
        unless(is_one, "adapted.checksum", || "is no checksum")?;
        unless(
            adapted.runs > 0,
            "adapted.runs",
            || "is 0, and without runs nothing was adapted",
        )?;
    }
    unless(!bundle.models.is_empty(), "models", || "is empty")?;
    let mut seen = BTreeSet::new();
    for (i, entry) in bundle.models.iter().enumerate() {
        let path = format!("models[{i}]");
        check_entry(entry, &path)?;
        let is_first = seen.insert((&entry.kind, &entry.codelet));
        unless(is_first, &path, || {
            format!("is another model of {} on {}", entry.codelet, entry.kind)
        })?;
    }
    Ok(())
}

fn check_entry(entry: &CodeletModel, path: &str) -> Result<(), Wrong> {
    let at = |field: &str| format!("{path}.{field}");
    let is_kind = ["cpu", "gpu"].contains(&entry.kind.as_str());
    unless(is_kind, &at("kind"), || "is neither `cpu` nor `gpu`")?;
    text(&at("codelet"), &entry.codelet)?;
    unless(entry.rows > 0, &at("rows"), || "is 0")?;
    let is_some = (1..=entry.rows).contains(&entry.configurations);
    unless(
        is_some,
        &at("configurations"),
        || "is not between 1 and the rows",
    )?;
    for (name, Range { min, max }) in &entry.ranges {
        let at = at(&format!("ranges.{name}"));
        let feature = Feature::parse(name).map_err(|why| (at.clone(), why))?;
        unless(
            feature.group().is_known_before(),
            &at,
            || "is of a feature that is known only after a run",
        )?;
        unless(min.is_finite() && max.is_finite(), &at, || "is not finite")?;
        unless(min <= max, &at, || {
            format!("begins at {min} and ends at {max}")
        })?;
    }
    model(&entry.fitted, &entry.validation, path, is_planned)?;
    match &entry.explaining {
        // Whatever it was learned from may explain.
        Some(of) => model(&of.fitted, &of.validation, &at("explaining"), |_| true),
        None => Ok(()),
    }
}

/// Whether a planning model may use a feature: physics' terms are computed
/// beforehand, too.
fn is_planned(name: &str) -> bool {
    name.starts_with("prior.")
        || Feature::parse(name).is_ok_and(|feature| feature.group().is_known_before())
}

fn model(
    fitted: &Fitted,
    validation: &Validation,
    path: &str,
    allowed: fn(&str) -> bool,
) -> Result<(), Wrong> {
    let mut seen = BTreeSet::new();
    for (i, input) in fitted.inputs.iter().enumerate() {
        let (path, name) = (format!("{path}.fitted.inputs[{i}].name"), &input.name);
        text(&path, name)?;
        unless(allowed(name), &path, || {
            format!("is `{name}`, which is not known before a run")
        })?;
        unless(seen.insert(name), &path, || {
            format!("is `{name}` for the second time")
        })?;
    }
    let sound = fitted.check();
    sound.map_err(|why| (format!("{path}.fitted"), why))?;
    let candidates = validation.candidates.iter().map(|of| &of.accuracy);
    let baselines = validation.baselines.iter().map(|of| &of.accuracy);
    let candidates = candidates.enumerate().map(|all| ("candidates", all));
    let baselines = baselines.enumerate().map(|all| ("baselines", all));
    for (list, (i, of)) in candidates.chain(baselines) {
        accuracy(of, &format!("{path}.validation.{list}[{i}].accuracy"))?;
    }
    let path = format!("{path}.validation.chosen");
    unless(
        validation.chosen().is_some(),
        &path,
        || "is none of the candidates",
    )
}

fn accuracy(accuracy: &Accuracy, path: &str) -> Result<(), Wrong> {
    let errors = [
        ("mape", accuracy.mape),
        ("median", accuracy.median),
        ("greatest", accuracy.greatest),
    ];
    // Below 0 or not a number, which JSON cannot hold.
    for (name, error) in errors {
        unless(error >= 0.0, &format!("{path}.{name}"), || "is negative")?;
    }
    let path = format!("{path}.r_squared");
    unless(accuracy.r_squared <= 1.0, &path, || "is above 1")
}

fn text(path: &str, text: &str) -> Result<(), Wrong> {
    unless(!text.trim().is_empty(), path, || "is empty")?;
    let is_plain = !text.chars().any(char::is_control);
    unless(is_plain, path, || "has a control character")
}

fn unless<W: Into<String>>(fine: bool, path: &str, why: impl FnOnce() -> W) -> Result<(), Wrong> {
    match fine {
        true => Ok(()),
        false => Err((path.to_owned(), why().into())),
    }
}

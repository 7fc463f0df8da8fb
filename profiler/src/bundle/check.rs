//! Checks of the values of a model file: values that no training gives are refused.

use std::collections::BTreeSet;

use super::{Bundle, CodeletModel, Range};
use crate::dataset::Feature;
use crate::fitted::Fitted;
use crate::train::Validation;
use crate::validate::Accuracy;

/// Where something is wrong, and what, as in `is empty`.
type Wrong = (String, String);

/// Checks what the types do not.
pub(super) fn check(bundle: &Bundle) -> Result<(), Wrong> {
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
        self::entry(entry, &path)?;
        let is_first = seen.insert((&entry.kind, &entry.codelet));
        unless(is_first, &path, || {
            format!("is another model of {} on {}", entry.codelet, entry.kind)
        })?;
    }
    Ok(())
}

fn entry(entry: &CodeletModel, path: &str) -> Result<(), Wrong> {
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

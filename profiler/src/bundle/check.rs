//! Checks of the values of a model file: values that no training gives are refused.

use std::collections::BTreeSet;

use super::{Bundle, CodeletModel, Range};
use crate::dataset::Feature;
use crate::fitted::Fitted;
use crate::train::Validation;
use crate::validate::Accuracy;

/// What is wrong, and where.
pub(super) struct Wrong {
    pub path: String,
    /// As in `is empty`.
    pub why: String,
}

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
        if !hexadecimal || adapted.checksum.len() != 64 {
            return wrong("adapted.checksum", "is no checksum");
        }
        if adapted.runs == 0 {
            return wrong("adapted.runs", "is 0, and without runs nothing was adapted");
        }
    }
    if bundle.models.is_empty() {
        return wrong("models", "is empty");
    }
    let mut seen = BTreeSet::new();
    for (i, entry) in bundle.models.iter().enumerate() {
        let path = format!("models[{i}]");
        self::entry(entry, &path)?;
        if !seen.insert((&entry.kind, &entry.codelet)) {
            let why = format!("is another model of {} on {}", entry.codelet, entry.kind);
            return wrong(&path, why);
        }
    }
    Ok(())
}

fn entry(entry: &CodeletModel, path: &str) -> Result<(), Wrong> {
    let at = |field: &str| format!("{path}.{field}");
    if !["cpu", "gpu"].contains(&entry.kind.as_str()) {
        return wrong(&at("kind"), "is neither `cpu` nor `gpu`");
    }
    text(&at("codelet"), &entry.codelet)?;
    if entry.rows == 0 {
        return wrong(&at("rows"), "is 0");
    }
    if entry.configurations == 0 || entry.configurations > entry.rows {
        return wrong(&at("configurations"), "is not between 1 and the rows");
    }
    for (name, range) in &entry.ranges {
        let at = at(&format!("ranges.{name}"));
        match Feature::parse(name) {
            Ok(feature) if feature.group().is_known_before() => {}
            Ok(_) => return wrong(&at, "is of a feature that is known only after a run"),
            Err(error) => return wrong(&at, error.to_string()),
        }
        self::range(range, &at)?;
    }
    inputs(&entry.fitted, &at("fitted"), is_planned)?;
    validation(&entry.validation, &at("validation"))?;
    if let Some(explaining) = &entry.explaining {
        inputs(&explaining.fitted, &at("explaining.fitted"), |_| true)?;
        validation(&explaining.validation, &at("explaining.validation"))?;
    }
    Ok(())
}

fn range(range: &Range, path: &str) -> Result<(), Wrong> {
    if !(range.min.is_finite() && range.max.is_finite()) {
        return wrong(path, "is not finite");
    }
    if range.min > range.max {
        let why = format!("begins at {} and ends at {}", range.min, range.max);
        return wrong(path, why);
    }
    Ok(())
}

/// Whether a planning model may use a feature: physics' terms are computed
/// beforehand, too.
fn is_planned(name: &str) -> bool {
    name.starts_with("prior.")
        || Feature::parse(name).is_ok_and(|feature| feature.group().is_known_before())
}

fn inputs(fitted: &Fitted, path: &str, allowed: fn(&str) -> bool) -> Result<(), Wrong> {
    let mut seen = BTreeSet::new();
    for (i, input) in fitted.inputs.iter().enumerate() {
        let path = format!("{path}.inputs[{i}].name");
        text(&path, &input.name)?;
        if !allowed(&input.name) {
            let why = format!("is `{}`, which is not known before a run", input.name);
            return wrong(&path, why);
        }
        if !seen.insert(&input.name) {
            return wrong(&path, format!("is `{}` for the second time", input.name));
        }
    }
    Ok(())
}

fn validation(validation: &Validation, path: &str) -> Result<(), Wrong> {
    let at = |list: &str, i: usize| format!("{path}.{list}[{i}].accuracy");
    for (i, candidate) in validation.candidates.iter().enumerate() {
        accuracy(&candidate.accuracy, &at("candidates", i))?;
    }
    for (i, baseline) in validation.baselines.iter().enumerate() {
        accuracy(&baseline.accuracy, &at("baselines", i))?;
    }
    if validation.chosen().is_none() {
        let path = format!("{path}.chosen");
        return wrong(&path, "is none of the candidates");
    }
    Ok(())
}

fn accuracy(accuracy: &Accuracy, path: &str) -> Result<(), Wrong> {
    let errors = [
        ("mape", accuracy.mape),
        ("median", accuracy.median),
        ("greatest", accuracy.greatest),
    ];
    for (name, error) in errors {
        if error < 0.0 {
            return wrong(&format!("{path}.{name}"), "is negative");
        }
    }
    if accuracy.r_squared > 1.0 {
        return wrong(&format!("{path}.r_squared"), "is above 1");
    }
    Ok(())
}

fn text(path: &str, text: &str) -> Result<(), Wrong> {
    if text.trim().is_empty() {
        return wrong(path, "is empty");
    }
    if text.chars().any(char::is_control) {
        return wrong(path, "has a control character");
    }
    Ok(())
}

fn wrong<T>(path: &str, why: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong {
        path: path.to_owned(),
        why: why.into(),
    })
}

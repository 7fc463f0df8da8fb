//! What is divided, and within what.

use serde::{Deserialize, Serialize};

use super::DividerError;

/// A step that ends this part of it sooner is worth other ranges.
const HYSTERESIS: f64 = 0.01;
/// Most units: a double counts them all.
const MOST_UNITS: u64 = 1 << 53;
/// Most work of all units: sums of it stay exact enough.
const MOST_WORK: f64 = 1e100;

/// What a [`Divider`](super::Divider) divides. [`Options::new`] has the defaults.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Units of a step.
    pub units: u64,
    /// Who computes them: processes, threads, devices, nodes.
    pub parts: usize,
    /// Ranges begin at multiples of it.
    #[serde(default = "one")]
    pub granularity: u64,
    /// Most units of each part at a time, or most of their `sizes`. Empty where there is no limit.
    #[serde(default)]
    pub limits: Vec<Option<u64>>,
    /// The work of each unit, in any scale. Empty where all have the same.
    #[serde(default)]
    pub weights: Vec<f64>,
    /// What each unit takes of a part's limit. Empty where each takes 1.
    #[serde(default)]
    pub sizes: Vec<u64>,
    /// How fast the parts are thought to be, in any scale: a first guess. Empty where unknown, 0
    /// where one is.
    #[serde(default)]
    pub rates: Vec<f64>,
    /// Steps in all, where known: other ranges must pay in those that are left.
    #[serde(default)]
    pub steps: Option<u64>,
    /// Seconds that it takes to move a unit from part to part. Where it is `None`, they are
    /// learned from what [`took`](super::Divider::took) is told, and 0 until then.
    #[serde(default)]
    pub move_seconds: Option<f64>,
    /// The part of a step by which other ranges must shorten it.
    #[serde(default = "hysteresis")]
    pub hysteresis: f64,
}

fn one() -> u64 {
    1
}

fn hysteresis() -> f64 {
    HYSTERESIS
}

impl Options {
    /// `units` among `parts`, with the defaults of everything else.
    pub fn new(units: u64, parts: usize) -> Self {
        Self {
            units,
            parts,
            granularity: one(),
            limits: Vec::new(),
            weights: Vec::new(),
            sizes: Vec::new(),
            rates: Vec::new(),
            steps: None,
            move_seconds: None,
            hysteresis: hysteresis(),
        }
    }

    pub(super) fn check(&self) -> Result<(), DividerError> {
        let wrong = |option, why: String| Err(DividerError::Option { option, why });
        if self.parts == 0 || self.parts > 1 << 20 {
            return wrong("parts", format!("{} is outside 1 to 2^20", self.parts));
        }
        if self.units > MOST_UNITS {
            let why = format!("{} is above 2^53, up to which shares are exact", self.units);
            return wrong("units", why);
        }
        if self.granularity == 0 {
            return wrong("granularity", "0 is below 1".to_owned());
        }
        let (units, parts) = (
            usize::try_from(self.units).unwrap_or(usize::MAX),
            self.parts,
        );
        for (option, entries, each, of) in [
            ("limits", self.limits.len(), parts, "part"),
            ("rates", self.rates.len(), parts, "part"),
            ("weights", self.weights.len(), units, "unit"),
            ("sizes", self.sizes.len(), units, "unit"),
        ] {
            if entries != 0 && entries != each {
                return wrong(
                    option,
                    format!("{entries} entries; there is one a {of}: {each}"),
                );
            }
        }
        let is_weight = |weight: &f64| weight.is_finite() && *weight >= 0.0;
        if let Some(unit) = self.weights.iter().position(|weight| !is_weight(weight)) {
            let why = format!(
                "unit {unit} has {}, which is no number of 0 or more",
                self.weights[unit]
            );
            return wrong("weights", why);
        }
        if self.weights.iter().sum::<f64>() > MOST_WORK {
            return wrong(
                "weights",
                format!("their sum is above {MOST_WORK:e}; scale them"),
            );
        }
        let is_rate = |rate: &f64| *rate == 0.0 || (1e-100..=1e100).contains(rate);
        if let Some(part) = self.rates.iter().position(|rate| !is_rate(rate)) {
            let why = format!(
                "part {part} has {}, which is neither 0 nor in 1e-100 to 1e100",
                self.rates[part]
            );
            return wrong("rates", why);
        }
        for (option, number) in [
            ("move_seconds", self.move_seconds.unwrap_or(0.0)),
            ("hysteresis", self.hysteresis),
        ] {
            if !is_weight(&number) {
                return wrong(option, format!("{number} is no number of 0 or more"));
            }
        }
        Ok(())
    }
}

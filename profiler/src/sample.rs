//! One run, as named figures.

use std::collections::BTreeMap;

/// One run of one device by itself: a row of a dataset.
///
/// A feature's name is `group.what_unit`. The group says when it is known:
/// `machine`, `known` and `derived` before the run, `counter`, `trace` and
/// `telemetry` only after it. See [`crate::dataset`] for the groups and units.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// The machine's name.
    pub machine: String,
    /// Whether its times are virtual.
    pub simulated: bool,
    /// The device's name, such as `host:8` or `gpu0`.
    pub device: String,
    /// `cpu` or `gpu`: the kind of the models that learn from it.
    pub kind: String,
    /// The codelet's name, such as `stencil5-f64`.
    pub codelet: String,
    /// What was run, but for the repeat: runs of one configuration have equal
    /// names, and never stand on both sides of a validation.
    pub configuration: String,
    /// Which run of the configuration, from 0.
    pub repeat: u32,
    /// Where its counters come from: `hardware`, `software` or `none`.
    pub counters: String,
    /// Steps computed.
    pub steps: u32,
    /// Seconds of all steps.
    pub seconds: f64,
    /// Everything else that is known of it, by name.
    pub features: BTreeMap<String, f64>,
}

impl Sample {
    /// Seconds of a step: what models predict.
    pub fn step_seconds(&self) -> f64 {
        self.seconds / f64::from(self.steps.max(1))
    }
}

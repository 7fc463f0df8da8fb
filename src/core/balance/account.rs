//! What became of a cost model's predictions in a run, for the report.

use schemars::JsonSchema;
use serde::Serialize;

/// A cost model's part in a run. Seconds of a step are from barrier to barrier.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// The model's name.
    pub model: String,
    /// Predicted seconds of the first plan's step, before anything ran; `None`
    /// where the model gave no plan.
    pub predicted_step_seconds: Option<f64>,
    /// Expected seconds of each step when it was planned; `None` where the model
    /// was not asked.
    pub expected_seconds: Vec<Option<f64>>,
    /// Times that the model was asked for a new plan, because measured and expected
    /// seconds differed or a device was lost.
    pub replans: u32,
    /// The first step for which the model was no longer asked.
    pub handed_over: Option<u32>,
    /// One entry a device.
    pub devices: Vec<Trusted>,
}

/// How far the model is trusted on a device at the end of the run.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Trusted {
    /// Measured over expected seconds of the last steps; 1 where the model is right, and
    /// `None` for a lost device.
    pub slowdown: Option<f64>,
    /// Relative deviation from `slowdown` that is within the confidence interval.
    pub interval: f64,
}

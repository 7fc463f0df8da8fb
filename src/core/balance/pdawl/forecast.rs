//! The interface to a cost model: a planner, and its forecast of a step.

use crate::balance::StepPlan;

/// Makes plans with a cost model. Equal questions have equal answers.
pub trait Planner {
    /// The plan of the least predicted step, if each device takes
    /// `slowdown[d]` times as long as the model says (infinite for one that is
    /// lost). `None` if no device can do anything.
    fn forecast(&self, slowdown: &[f64]) -> Option<Forecast>;

    /// The forecast of a given plan, with the same slowdowns.
    fn expect(&self, plan: &StepPlan, slowdown: &[f64]) -> Forecast;
}

/// A plan and its expectations.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    pub plan: StepPlan,
    /// Seconds from barrier to barrier.
    pub step_seconds: f64,
    /// One entry a device.
    pub devices: Vec<Expected>,
}

/// What is expected of a device in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expected {
    /// Seconds from the step's begin until the end of its last command is known; 0 if it
    /// has no work.
    pub seconds: f64,
    /// Held units a second of its kernels, without the time of launches beyond the
    /// first; `None` for a device that computes on host memory.
    pub held_rate: Option<f64>,
    /// Seconds of each of those launches.
    pub launch: Option<f64>,
    /// Pool units a second: streamed, or, on host memory, while others stream.
    pub pool_rate: Option<f64>,
    /// Pool units a second on host memory while no device streams.
    pub alone_rate: Option<f64>,
    /// Seconds of a step in which it computes nothing.
    pub overhead: f64,
    /// Relative standard deviation of the model's predictions for it, as
    /// cross-validation found it.
    pub spread: f64,
}

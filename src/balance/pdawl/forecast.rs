//! What a cost model expects of the next steps: pure data that the balancer
//! works with, and the seam behind which a planner makes it.

use crate::balance::StepPlan;

/// Makes plans out of a cost model. Pure: equal questions, equal answers.
pub trait Planner {
    /// The plan of the least predicted step, if each device takes
    /// `slowdown[d]` times as long as the model says (infinite for one that is
    /// lost). `None` if no device can do anything.
    fn forecast(&self, slowdown: &[f64]) -> Option<Forecast>;

    /// What the model expects if `plan` is followed, with the same slowdowns.
    fn expect(&self, plan: &StepPlan, slowdown: &[f64]) -> Forecast;
}

/// A plan, and what is expected of it.
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
    /// From the step's begin until it is known that its last command has ended,
    /// in seconds; 0 if it does nothing.
    pub seconds: f64,
    /// Held units a second of its kernels, the time of launches beyond the
    /// first left out; `None` for one that computes on host memory.
    pub held_rate: Option<f64>,
    /// Seconds of each of these.
    pub launch: Option<f64>,
    /// Pool units a second: streamed, or, on host memory, while others stream.
    pub pool_rate: Option<f64>,
    /// Pool units a second on host memory while nobody streams.
    pub alone_rate: Option<f64>,
    /// Seconds of a step in which it works on nothing.
    pub overhead: f64,
    /// Relative standard deviation of the model's predictions for it, as
    /// cross-validation found it.
    pub spread: f64,
}

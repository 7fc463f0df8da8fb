//! What a balancer that works with a cost model tells of it.

/// A cost model's part in a run. Seconds are those of steps, from barrier to
/// barrier.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// The model's name.
    pub model: String,
    /// What the model said of the first plan, before anything ran; `None` if
    /// it had no plan.
    pub predicted_step_seconds: Option<f64>,
    /// What was expected of each step when it was planned, by step; `None`
    /// where the model was not asked.
    pub expected_seconds: Vec<Option<f64>>,
    /// Plans that were made anew since measured and expected seconds parted,
    /// or since a device was lost.
    pub replans: u32,
    /// The step from which on the model was not asked any more.
    pub handed_over: Option<u32>,
    /// One entry a device.
    pub devices: Vec<Trusted>,
}

/// How far a model is trusted on a device, at the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trusted {
    /// Measured over expected seconds, as the last steps showed; 1 where the
    /// model is right. `None` for a device that is lost.
    pub slowdown: Option<f64>,
    /// Relative deviation from that which is no surprise.
    pub interval: f64,
}

//! Rate estimates: what is known of a device, as medians over the last steps. An
//! estimate ignores one outlier and follows a lasting change after two steps.

use super::launch_cost::LaunchCost;

/// Observations in an estimate's window.
const WINDOW: usize = 5;
/// Observations after which an estimate is steady.
const STEADY: usize = 3;
/// Observations over which jitter is averaged.
const REMEMBERED: usize = 16;
/// A median's standard error, times the root of the count, over the mean distance of
/// successive observations: 1.25 for the median times 0.89 for the distance of two
/// normal observations.
const MEDIAN: f64 = 1.11;
/// A deviation from the median that is so many times the jitter is no noise: one in 20 of
/// normal observations has it.
const BEYOND: f64 = 2.0;
/// A relative deviation beyond any.
pub const NEVER_SUDDEN: f64 = 1e12;
/// A relative deviation above which an observation is suspect.
const SUDDEN: f64 = 0.2;

/// How an observation relates to an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It fits, or it is the first.
    Fits,
    /// It is far off: an outlier, unless the next observation is far off, too.
    Suspect,
    /// It is the second one far off: the window begins anew with it.
    Changed,
}

/// A positive quantity observed once a step.
#[derive(Clone, Debug, Default)]
pub struct Estimate {
    window: [f64; WINDOW],
    seen: usize,
    /// The window's median.
    median: Option<f64>,
    suspect: Option<f64>,
    /// A step has passed since the last observation.
    stale: bool,
    jitter: Jitter,
    /// The value until the first observation.
    supposed: Option<f64>,
}

/// The distance of an observation from the one before, outliers left out. A slow
/// drift hardly counts.
#[derive(Clone, Copy, Debug, Default)]
struct Jitter {
    /// Mean relative distance of the last observations.
    mean: f64,
    count: usize,
}

impl Jitter {
    fn observe(&mut self, distance: f64) {
        self.count = (self.count + 1).min(REMEMBERED);
        self.mean += (distance - self.mean) / self.count as f64;
    }
}

impl Estimate {
    /// One that has been observed once.
    pub fn of(observed: f64) -> Self {
        let mut estimate = Self::default();
        estimate.push(observed);
        estimate
    }

    /// Supposes a value until the first observation.
    pub fn suppose(&mut self, value: Option<f64>) {
        self.supposed = value.filter(|value| value.is_finite() && *value >= 0.0);
    }

    /// The median of the window; before the first observation the supposed value.
    pub fn value(&self) -> Option<f64> {
        self.observed().or(self.supposed)
    }

    /// The median of the window; `None` before the first observation.
    pub fn observed(&self) -> Option<f64> {
        self.median
    }

    /// An observation under the conditions of those before it.
    pub fn observe(&mut self, observed: f64) -> Verdict {
        self.observe_within(observed, SUDDEN)
    }

    /// The same where a relative deviation up to `sudden` is noise.
    pub fn observe_within(&mut self, observed: f64, sudden: f64) -> Verdict {
        if !observed.is_finite() || observed < 0.0 {
            return Verdict::Fits;
        }
        let Some(value) = self.observed() else {
            self.push(observed);
            return Verdict::Fits;
        };
        let (least, most) = (value / (1.0 + sudden), value * (1.0 + sudden));
        if (least..=most).contains(&observed) {
            let last = self.window[(self.seen - 1) % WINDOW];
            self.jitter.observe((observed / last - 1.0).abs());
            self.suspect = None;
            self.push(observed);
            return Verdict::Fits;
        }
        match self.suspect {
            Some(suspect) if (suspect > value) == (observed > value) => {
                self.restart(observed);
                Verdict::Changed
            }
            _ => {
                self.suspect = Some(observed);
                Verdict::Suspect
            }
        }
    }

    /// An observation under new conditions, such as another share. If it differs, the
    /// window begins anew with it.
    pub fn observe_anew(&mut self, observed: f64) {
        if !observed.is_finite() || observed < 0.0 {
            return;
        }
        match self.value() {
            Some(value) if (observed / value - 1.0).abs() <= 0.02 => self.push(observed),
            _ => self.restart(observed),
        }
    }

    /// The same where conditions may not matter: a difference within the jitter is noise.
    pub fn observe_perhaps_anew(&mut self, observed: f64) {
        let is_noise = |value: f64| (observed / value - 1.0).abs() <= BEYOND * self.jitter();
        match self.observed().is_some_and(is_noise) {
            true => _ = self.observe_within(observed, NEVER_SUDDEN),
            false => self.observe_anew(observed),
        }
    }

    /// Forgets all observations.
    pub fn forget(&mut self) {
        *self = Self {
            supposed: self.supposed,
            jitter: self.jitter,
            ..Self::default()
        };
    }

    /// A step has passed without an observation: a suspect one stays unconfirmed.
    pub fn unobserved(&mut self) {
        self.suspect = None;
        self.stale = true;
    }

    /// Whether the last step passed without an observation.
    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// Whether it has been observed often enough.
    pub fn is_steady(&self) -> bool {
        self.seen >= STEADY
    }

    /// The relative standard error of [`Self::value`], for normal noise; 0 until two
    /// observations have been compared.
    pub fn uncertainty(&self) -> f64 {
        let count = self.seen.clamp(1, WINDOW) as f64;
        MEDIAN * self.jitter.mean / count.sqrt()
    }

    /// Mean relative distance of an observation from the one before.
    pub fn jitter(&self) -> f64 {
        self.jitter.mean
    }

    /// Whether the last observation was far off and is not yet confirmed.
    pub fn is_suspect(&self) -> bool {
        self.suspect.is_some()
    }

    fn restart(&mut self, observed: f64) {
        *self = Self {
            supposed: self.supposed,
            jitter: self.jitter,
            ..Self::of(observed)
        };
    }

    fn push(&mut self, observed: f64) {
        self.window[self.seen % WINDOW] = observed;
        self.seen += 1;
        self.stale = false;
        let mut sorted = self.window;
        let sorted = &mut sorted[..self.seen.min(WINDOW)];
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        self.median = Some(0.5 * (sorted[(count - 1) / 2] + sorted[count / 2]));
    }
}

/// The estimates of one device.
#[derive(Clone, Debug, Default)]
pub struct RateEstimates {
    /// Held units a second, without the time of launches beyond the first.
    pub held: Estimate,
    /// Seconds of each of those launches.
    pub launch: LaunchCost,
    /// Seconds by which a streamed chunk prolongs the kernels on held units, beyond
    /// the time of its own units: its launch, and launches that writes delay.
    pub chunk: Estimate,
    /// Units of such a chunk.
    pub chunk_units: Estimate,
    /// Pool units a second: streamed, or, on host memory, while others stream.
    pub pool: Estimate,
    /// Pool units a second on host memory while no device streams: often much more,
    /// since memory bandwidth is shared.
    pub alone: Estimate,
    /// Seconds of a step in which it computes nothing.
    pub overhead: Estimate,
    /// The same where devices hold all units: nothing passes through a pool.
    pub holding: Estimate,
    /// The part of these before its work starts.
    pub start: Estimate,
}

/// Estimates of a device from elsewhere, such as a cost model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Supposed {
    pub held: Option<f64>,
    pub launch: Option<f64>,
    pub pool: Option<f64>,
    pub alone: Option<f64>,
    pub overhead: Option<f64>,
}

impl Supposed {
    /// The same for a device that is `factor` times as fast.
    pub fn at(self, factor: f64) -> Self {
        let rate = |rate: Option<f64>| rate.map(|rate| rate * factor);
        Self {
            held: rate(self.held),
            launch: self.launch,
            pool: rate(self.pool),
            alone: rate(self.alone),
            overhead: self.overhead,
        }
    }
}

impl RateEstimates {
    /// Supposes these values for whatever has not been measured.
    pub fn suppose(&mut self, supposed: &Supposed) {
        self.held.suppose(supposed.held);
        self.launch.suppose(supposed.launch);
        self.pool.suppose(supposed.pool);
        self.alone.suppose(supposed.alone);
        self.overhead.suppose(supposed.overhead);
        self.holding.suppose(supposed.overhead);
    }

    /// Seconds of a step in which it computes nothing, perhaps one of which devices hold all
    /// units.
    pub fn overhead(&self, holding: bool) -> &Estimate {
        match holding {
            true => &self.holding,
            false => &self.overhead,
        }
    }

    /// Forgets the overhead: it differs once its device works beside others, or
    /// alone.
    pub fn forget_overhead(&mut self) {
        self.overhead.forget();
        self.holding.forget();
        self.start.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(observations: &[f64]) -> Estimate {
        let mut estimate = Estimate::default();
        for observed in observations {
            estimate.observe(*observed);
        }
        estimate
    }

    #[test]
    fn it_is_the_median_of_the_last_five() {
        assert_eq!(Estimate::default().value(), None);
        assert_eq!(after(&[2.0]).value(), Some(2.0));
        assert_eq!(after(&[1.0, 1.1]).value(), Some(1.05));
        let drifting = after(&[1.0, 1.1, 1.2, 1.25, 1.3, 1.3, 1.3]);
        assert_eq!(drifting.value(), Some(1.3));
    }

    #[test]
    fn one_outlier_leaves_no_trace() {
        let mut estimate = after(&[1.0, 1.01, 0.99]);
        assert_eq!(estimate.observe(0.2), Verdict::Suspect);
        assert_eq!(estimate.value(), Some(1.0));
        assert_eq!(estimate.observe(1.0), Verdict::Fits);
        assert_eq!(estimate.observe(0.2), Verdict::Suspect);
    }

    #[test]
    fn a_second_one_is_a_change() {
        let mut estimate = after(&[1.0, 1.01, 0.99]);
        assert_eq!(estimate.observe(0.5), Verdict::Suspect);
        assert_eq!(estimate.observe(0.52), Verdict::Changed);
        assert_eq!(estimate.value(), Some(0.52));
    }

    #[test]
    fn opposite_outliers_are_no_change() {
        let mut estimate = after(&[1.0, 1.0]);
        estimate.observe(0.5);
        assert_eq!(estimate.observe(2.0), Verdict::Suspect);
        assert_eq!(estimate.value(), Some(1.0));
    }

    #[test]
    fn new_conditions_count_at_once() {
        let mut estimate = after(&[1.0, 1.0, 1.0]);
        estimate.observe_anew(1.5);
        assert_eq!(estimate.value(), Some(1.5));
        estimate.observe_anew(1.51);
        assert_eq!(estimate.value(), Some(1.505));
    }

    #[test]
    fn a_suspicion_that_nothing_confirms_is_dropped() {
        let mut estimate = after(&[1.0, 1.0, 0.5]);
        assert!(estimate.is_suspect());
        estimate.unobserved();
        assert!(!estimate.is_suspect());
        assert_eq!(estimate.value(), Some(1.0));
        assert_eq!(estimate.observe(0.5), Verdict::Suspect);
    }

    #[test]
    fn it_is_stale_until_observed_again() {
        let mut estimate = after(&[1.0, 1.0]);
        assert!(!estimate.is_stale());
        estimate.unobserved();
        assert!(estimate.is_stale());
        estimate.observe(1.0);
        assert!(!estimate.is_stale());
    }

    #[test]
    fn the_first_observation_replaces_what_was_supposed() {
        let mut estimate = Estimate::default();
        estimate.suppose(Some(4.0));
        assert_eq!(estimate.value(), Some(4.0));
        assert_eq!(estimate.observe(0.5), Verdict::Fits);
        estimate.suppose(Some(3.0));
        assert_eq!(estimate.value(), Some(0.5));
        estimate.observe_anew(0.7);
        assert_eq!(estimate.value(), Some(0.7));
    }

    #[test]
    fn noise_is_reported_and_a_drift_is_none() {
        assert_eq!(after(&[1.0]).uncertainty(), 0.0);
        let noisy = after(&[1.0, 1.05, 0.98, 1.04, 0.97, 1.02]).uncertainty();
        assert!((0.02..0.04).contains(&noisy), "{noisy}");
        let drifting = after(&[1.0, 1.01, 1.02, 1.03, 1.04, 1.05]).uncertainty();
        assert!(drifting < 0.006, "{drifting}");
        // An outlier is none, either.
        assert_eq!(after(&[1.0, 1.0, 1.0, 3.0]).uncertainty(), 0.0);
    }

    #[test]
    fn what_is_noise_can_be_reported() {
        let mut estimate = Estimate::of(1.0);
        assert_eq!(estimate.observe_within(1.4, 0.5), Verdict::Fits);
        assert_eq!(estimate.observe_within(0.7, 0.5), Verdict::Suspect);
    }

    #[test]
    fn nonsense_is_ignored() {
        assert_eq!(
            after(&[1.0, f64::NAN, f64::INFINITY, -1.0]).value(),
            Some(1.0)
        );
    }
}

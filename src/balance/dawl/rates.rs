//! Robust estimates: a median over the last steps that one outlier cannot
//! move, and that follows a real change after two steps.

use super::launch_cost::LaunchCost;

/// Steps that an estimate looks back.
const WINDOW: usize = 5;
/// Observations that make an estimate steady.
const STEADY: usize = 3;
/// Part of a before_slowdown rate that counts as that rate.
const AGAIN: f64 = 0.9;
/// Observations that tell how noisy they are.
const REMEMBERED: usize = 16;
/// A median's standard error over the mean distance of observations, were they
/// independent and one was all there is: 1.25 by the median, 0.89 by the mean
/// distance of two.
const MEDIAN: f64 = 1.11;
/// A relative deviation beyond any.
pub const NEVER_SUDDEN: f64 = 1e12;
/// A relative deviation that is not noise.
const SUDDEN: f64 = 0.2;

/// What an observation did to an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It fits, or it is the first.
    Fits,
    /// It is far off: an outlier, unless the next one is alike.
    Suspect,
    /// The second one far off: the past has been forgotten.
    Changed,
}

/// A positive quantity observed once a step.
#[derive(Clone, Debug, Default)]
pub struct Estimate {
    window: [f64; WINDOW],
    seen: usize,
    /// The window's median: asked for much more often than it changes.
    median: Option<f64>,
    suspect: Option<f64>,
    /// A step has passed since the last observation.
    stale: bool,
    jitter: Jitter,
    /// What stands for it until it is observed.
    supposed: Option<f64>,
}

/// How far observations lie from those before them, outliers left out. A drift
/// is no noise, and hardly counts.
#[derive(Clone, Copy, Debug, Default)]
struct Jitter {
    /// Mean relative distance: of as many observations as were made, of late.
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

    /// What it is taken to be until the first observation, which counts alone.
    pub fn suppose(&mut self, value: Option<f64>) {
        self.supposed = value.filter(|value| value.is_finite() && *value >= 0.0);
    }

    /// The median of the window; before the first observation what was
    /// supposed, if anything was.
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

    /// An observation under new conditions, such as another share: what it
    /// contradicts is forgotten at once.
    pub fn observe_anew(&mut self, observed: f64) {
        if !observed.is_finite() || observed < 0.0 {
            return;
        }
        match self.value() {
            Some(value) if (observed / value - 1.0).abs() <= 0.02 => self.push(observed),
            _ => self.restart(observed),
        }
    }

    /// Forgets what was observed.
    pub fn forget(&mut self) {
        *self = Self {
            supposed: self.supposed,
            jitter: self.jitter,
            ..Self::default()
        };
    }

    /// Whatever it is of has become `factor` times as fast.
    pub fn scale(&mut self, factor: f64) {
        self.window.iter_mut().for_each(|seen| *seen *= factor);
        self.median = self.median.map(|median| median * factor);
        self.supposed = self.supposed.map(|supposed| supposed * factor);
    }

    /// A step passed without an observation: nothing will confirm the last.
    pub fn unobserved(&mut self) {
        self.drop_suspicion();
        self.stale = true;
    }

    /// Whatever made the last observation suspect is explained.
    pub fn drop_suspicion(&mut self) {
        self.suspect = None;
    }

    /// Whether the last step passed without an observation.
    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// Whether it has been observed often enough to be relied upon.
    pub fn is_steady(&self) -> bool {
        self.seen >= STEADY
    }

    /// About the relative standard error of [`Self::value`], for normal noise; 0
    /// until two observations have been compared.
    pub fn uncertainty(&self) -> f64 {
        let count = self.seen.clamp(1, WINDOW) as f64;
        MEDIAN * self.jitter.mean / count.sqrt()
    }

    /// Mean relative distance of one observation from the one before.
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

/// What is known of a device.
#[derive(Clone, Debug, Default)]
pub struct RateEstimates {
    /// Held units a second, the time of launches beyond the first left out.
    pub held: Estimate,
    /// What these cost.
    pub launch: LaunchCost,
    /// Seconds by which each streamed chunk prolongs the kernels on held units
    /// beyond its own units' share: its launch, and others that writes delay.
    pub chunk: Estimate,
    /// Units of such a chunk.
    pub chunk_units: Estimate,
    /// Pool units a second: streamed, or, on host memory, while others stream.
    pub pool: Estimate,
    /// Pool units a second on host memory while nobody streams: memory is
    /// shared, and this may be much more.
    pub alone: Estimate,
    /// Seconds of a step in which it works on nothing.
    pub overhead: Estimate,
    /// Of these, seconds before its work starts.
    pub start: Estimate,
}

/// What a rates would show, as somebody expects who has not measured it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Supposed {
    pub held: Option<f64>,
    pub launch: Option<f64>,
    pub pool: Option<f64>,
    pub alone: Option<f64>,
    pub overhead: Option<f64>,
}

impl Supposed {
    /// The same of a device that is `factor` times as fast.
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
    /// Takes these figures for whatever has not been measured.
    pub fn suppose(&mut self, supposed: &Supposed) {
        self.held.suppose(supposed.held);
        self.launch.suppose(supposed.launch);
        self.pool.suppose(supposed.pool);
        self.alone.suppose(supposed.alone);
        self.overhead.suppose(supposed.overhead);
    }

    /// Whether its device is slower than another rates says: one of the rates
    /// that both tell is lower, and none is higher.
    pub fn is_slower(&self, than: &Self) -> bool {
        let rates = |rates: &Self| [&rates.held, &rates.pool, &rates.alone].map(Estimate::observed);
        let (own, other) = (rates(self), rates(than));
        let both = || {
            own.iter()
                .zip(&other)
                .filter_map(|(own, other)| own.zip(*other))
        };
        both().any(|(own, other)| own < other) && !both().any(|(own, other)| own > other)
    }

    /// Whether its device is again what it was, in all that the last step has
    /// shown: then it is so, too, in what it has not.
    pub fn recover(&mut self, before_slowdown: &Self) -> bool {
        let pairs = [
            (&mut self.held, &before_slowdown.held),
            (&mut self.pool, &before_slowdown.pool),
            (&mut self.alone, &before_slowdown.alone),
        ];
        let rates = |(own, before_slowdown): &(&mut Estimate, &Estimate)| {
            (own.observed().filter(|_| !own.stale)).zip(before_slowdown.observed())
        };
        let mut shown = pairs.iter().filter_map(rates).peekable();
        let recovered = shown.peek().is_some()
            && shown.all(|(own, before_slowdown)| own >= AGAIN * before_slowdown);
        for (own, before_slowdown) in pairs {
            if recovered && own.stale && before_slowdown.observed().is_some() {
                *own = before_slowdown.clone();
            }
        }
        recovered
    }

    /// Its device is to work beside others, or alone: what it waits for will
    /// be something else.
    pub fn forget_overhead(&mut self) {
        self.overhead.forget();
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
        estimate.scale(0.5);
        assert_eq!(estimate.value(), Some(2.0));
        assert_eq!(estimate.observe(0.5), Verdict::Fits);
        estimate.suppose(Some(3.0));
        assert_eq!(estimate.value(), Some(0.5));
        estimate.observe_anew(0.7);
        assert_eq!(estimate.value(), Some(0.7));
    }

    #[test]
    fn noise_is_told_and_a_drift_is_none() {
        assert_eq!(after(&[1.0]).uncertainty(), 0.0);
        let noisy = after(&[1.0, 1.05, 0.98, 1.04, 0.97, 1.02]).uncertainty();
        assert!((0.02..0.04).contains(&noisy), "{noisy}");
        let drifting = after(&[1.0, 1.01, 1.02, 1.03, 1.04, 1.05]).uncertainty();
        assert!(drifting < 0.006, "{drifting}");
        // An outlier is none, either.
        assert_eq!(after(&[1.0, 1.0, 1.0, 3.0]).uncertainty(), 0.0);
    }

    #[test]
    fn what_is_itself_again_is_so_in_what_was_not_seen() {
        let rates = |held: f64, pool: f64| RateEstimates {
            held: Estimate::of(held),
            pool: Estimate::of(pool),
            ..RateEstimates::default()
        };
        let before_slowdown = rates(10.0, 5.0);
        let mut slow = rates(2.0, 1.0);
        assert!(slow.is_slower(&before_slowdown) && !before_slowdown.is_slower(&slow));
        assert!(!rates(2.0, 6.0).is_slower(&before_slowdown));
        assert!(!slow.recover(&before_slowdown));
        slow.held.observe_anew(9.5);
        assert!(
            !slow.recover(&before_slowdown),
            "it streams as slowly as before"
        );
        slow.pool.unobserved();
        assert!(slow.recover(&before_slowdown));
        assert_eq!(slow.pool.value(), Some(5.0));
        assert_eq!(slow.held.value(), Some(9.5));
    }

    #[test]
    fn what_is_noise_can_be_told() {
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

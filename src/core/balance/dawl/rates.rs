//! Rate estimates: what is known of a device, as medians over the last steps. An estimate
//! ignores one outlier and follows a lasting change after two steps. A device has rates of its
//! pool units, while others stream and while none does, and costs of its launches.

use super::Dawl;
use super::chunks::{Progress, seconds};
use crate::balance::{DeviceStep, StepReport};

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

// The rates at which a device computes pool units: while others stream, and while no
// device streams. They differ, since memory bandwidth is shared. A step shows one of
// them, or both in parts.

/// A rate counts if it was measured on more than one in so many of the device's pool
/// units: the last chunks are small and show little.
const ENOUGH: u64 = 4;
/// The same for a rate that was never measured.
const BETTER_THAN_NOTHING: u64 = 96;

/// Pool units a second, as far as a step has shown them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PoolRates {
    /// While others streamed, or its own if it streams.
    pub beside: Option<f64>,
    /// Of a device on host memory, while no device streamed.
    pub alone: Option<f64>,
}

impl PoolRates {
    /// The rates that a step has shown of a device that computes on host memory, whose
    /// chunks have at least `least` units.
    pub fn of(progress: &Progress, rates: &RateEstimates, least: u64) -> Self {
        let enough = |of: &Estimate| match of.observed() {
            Some(_) => progress.done.div_ceil(ENOUGH),
            None => (progress.done.div_ceil(BETTER_THAN_NOTHING)).max(least.min(progress.done)),
        };
        let beside = progress.beside_rate(enough(&rates.pool));
        let alone = progress.alone_rate(enough(&rates.alone));
        Self { beside, alone }
    }
}

/// The conditions of a step's rates.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions {
    /// The plan differed from the one before.
    pub anew: bool,
    /// No device was planned to stream.
    pub unstreamed: bool,
    /// The step is long enough to show a change of the device.
    pub telling: bool,
    /// Units moved: a rate that was not measured is not stale.
    pub disturbed: bool,
}

impl RateEstimates {
    /// Updates both rates by a step. Returns whether the device has changed for good.
    pub fn observe_pace(&mut self, seen: PoolRates, under: Conditions) -> bool {
        let beside = note(&mut self.pool, seen.beside, !under.unstreamed, under);
        let alone = note(&mut self.alone, seen.alone, under.unstreamed, under);
        [beside, alone].contains(&Some(Verdict::Changed))
    }
}

/// Takes in an observation, if there is one.
fn note(of: &mut Estimate, seen: Option<f64>, meant: bool, under: Conditions) -> Option<Verdict> {
    let Some(rate) = seen else {
        if !under.disturbed {
            of.unobserved();
        }
        return None;
    };
    // The first step of planned conditions replaces a stale estimate. Unplanned
    // conditions may come of a disturbance.
    let verdict = if under.anew || meant && of.is_stale() {
        of.observe_anew(rate);
        Verdict::Fits
    } else if under.telling {
        of.observe(rate)
    } else {
        of.observe_within(rate, NEVER_SUDDEN)
    };
    Some(verdict)
}

// The cost of a launch on held units, from plans with few launches and plans with
// many for about the same work; and the delay by a streamed chunk.

/// A device's kernels on held units in a step, and the streamed ones beside them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kernels {
    /// Units held, and streamed ones beside them.
    pub units: f64,
    /// Launches on held units beyond the first.
    pub more: f64,
    /// Launches on streamed units, and these.
    pub chunks: f64,
    pub streamed: f64,
    pub seconds: f64,
}

/// Launches a unit in two observations must differ by this factor to show the cost of
/// a launch.
const DISTINCT: f64 = 4.0;
/// Seconds that a launch takes at least.
const LEAST: f64 = 1e-9;
/// A delay below this part of a step may be noise.
const NOISE: f64 = 0.04;
/// Streamed chunks from which on their cost exceeds a step's noise.
const SEVERAL: f64 = 3.0;
/// A relative change of a rate that streamed chunks can explain.
const ALIKE: f64 = 0.1;
/// A launch takes at most this part of what it takes with its units.
const MOST: f64 = 0.9;

/// Seconds of each launch on held units beyond the first.
#[derive(Clone, Debug, Default)]
pub struct LaunchCost {
    cost: Estimate,
    /// The last observation with few launches.
    few: Option<Kernels>,
}

impl LaunchCost {
    /// The estimate; 0 until two plans have shown it.
    pub fn seconds(&self) -> f64 {
        self.cost.value().unwrap_or(0.0)
    }

    /// Supposes a cost until it is measured.
    pub fn suppose(&mut self, seconds: Option<f64>) {
        self.cost.suppose(seconds);
    }

    /// Learns from a step. Two steps, of `units / rate + more * cost` seconds each, are
    /// two equations for the rate and the cost.
    pub fn learn(&mut self, seen: Kernels) {
        let Some(few) = self.few else {
            self.few = Some(seen);
            return;
        };
        let (sparse, dense) = (few.more * seen.units, seen.more * few.units);
        if dense > DISTINCT * sparse && dense > few.units {
            let cost = (seen.seconds * few.units - few.seconds * seen.units) / (dense - sparse);
            let most = MOST * seen.seconds / seen.more;
            self.cost.observe_anew(cost.clamp(0.0, most));
        } else if dense <= sparse.max(few.units) {
            self.few = Some(seen);
        }
    }

    /// The device's speed has changed: earlier steps cannot be compared with later
    /// ones.
    pub fn start_over(&mut self) {
        self.few = None;
    }
}

impl RateEstimates {
    /// Units a second of these kernels, without the time of launches.
    pub fn launches_left_out(&self, kernels: &Kernels) -> f64 {
        let chunk = self.chunk.value().unwrap_or(self.launch.seconds());
        let launches = kernels.more * self.launch.seconds() + kernels.chunks * chunk;
        kernels.units / (kernels.seconds - launches).max((1.0 - MOST) * kernels.seconds)
    }

    /// Learns the costs of launches and chunks. `anew`: the plan differs from the one
    /// before; under the same plan, a difference shows a change of the device.
    /// `moved`: units moved, which delays launches.
    pub fn learn_launches(&mut self, kernels: &Kernels, anew: bool, moved: bool) {
        if kernels.chunks == 0.0 {
            if anew {
                self.launch.learn(*kernels);
            }
            return;
        }
        let units_each = kernels.streamed / kernels.chunks;
        (self.chunk_units).observe_within(units_each, NEVER_SUDDEN);
        let Some(rate) = self.held.value() else {
            return;
        };
        // A larger difference shows a change of the device.
        let change = (self.launches_left_out(kernels) / rate - 1.0).abs();
        let is_alike = !self.chunk.is_steady() || change <= ALIKE;
        if moved || kernels.chunks < SEVERAL || !is_alike {
            return;
        }
        let held = kernels.units / rate + kernels.more * self.launch.seconds();
        let delay = kernels.seconds - held;
        let chunk = match delay < NOISE * kernels.seconds {
            true => 0.0,
            false => delay / kernels.chunks,
        };
        let most = MOST * kernels.seconds / kernels.chunks;
        // A difference of two noisy values is noisy: never suspect.
        (self.chunk).observe_within(chunk.clamp(LEAST, most), NEVER_SUDDEN);
    }
}

// Reads a step's report: rates, overheads, and whether a device has changed for good
// (steps 3 and 6).

/// Streamed chunks from which on a step can show a change of a stream's rate.
const STREAMED: u64 = 8;

impl Dawl {
    /// Updates the estimates of device `d` by a step. Returns whether it has changed for
    /// good.
    pub(super) fn observe(&mut self, d: usize, did: &DeviceStep, anew: bool, moved: bool) -> bool {
        let mut changed = false;
        let more = self.more_launches(d, did.held);
        let progress = &self.progress(d);
        let holding = self.may_hold_alone() && self.plan.pooled.iter().all(|units| *units == 0);
        let rates = &mut self.rates[d];
        if did.held > 0 && did.held_busy > 0 {
            let kernels = Kernels {
                units: (did.held + did.beside) as f64,
                more,
                chunks: did.beside_launches as f64,
                streamed: did.beside as f64,
                seconds: seconds(did.held_busy),
            };
            rates.learn_launches(&kernels, anew, moved);
            let rate = rates.launches_left_out(&kernels);
            if anew {
                rates.held.observe_perhaps_anew(rate);
            } else if rates.held.observe(rate) == Verdict::Changed {
                changed = true;
                rates.launch.start_over();
                rates.chunk.forget();
            }
        } else {
            rates.held.unobserved();
        }
        let least = self.granularity[d].min_chunk();
        let on_host = self.devices[d].capacity.is_none();
        let seen = match on_host {
            true => PoolRates::of(progress, rates, least),
            false => PoolRates {
                beside: progress.rate(),
                alone: None,
            },
        };
        let known = rates.pool.value().is_some();
        let enough = !known || progress.done >= least;
        // Moves take memory bandwidth, and chunks wait for them.
        let disturbed = moved && on_host && (known || rates.alone.value().is_some());
        let seen = PoolRates {
            beside: seen.beside.filter(|_| enough && !disturbed),
            ..seen
        };
        let under = Conditions {
            anew,
            unstreamed: self.unstreamed.is_some(),
            // A few chunks show the latency of a pipeline, not its rate.
            telling: on_host || progress.chunks() >= STREAMED,
            disturbed: moved,
        };
        changed |= rates.observe_pace(seen, under);
        // Moves add to the overhead, and a lone device has less of it.
        let was_alone = did.held == self.units;
        let of = if holding {
            &mut rates.holding
        } else {
            &mut rates.overhead
        };
        let disturbed = was_alone || moved && of.value().is_some();
        if did.held + did.pooled > 0 && !disturbed {
            let busy = did.held_busy.max(did.pooled_busy);
            // Without chunks, all time outside the kernels is the device's own.
            let own = match did.pooled {
                0 => did.known.saturating_sub(busy),
                _ => {
                    let telling = did.known.saturating_sub(did.finished);
                    did.waited.min(did.finished.saturating_sub(busy)) + telling
                }
            };
            // A single step's wait is mostly chance.
            for (estimate, waited) in [(of, own), (&mut rates.start, did.waited)] {
                match anew {
                    true => estimate.observe_anew(seconds(waited)),
                    false => _ = estimate.observe_within(seconds(waited), NEVER_SUDDEN),
                }
            }
        }
        changed
    }

    /// A step's seconds less the wait for moves.
    pub(super) fn without_moves(&self, report: &StepReport) -> f64 {
        let waited = (report.devices.iter().zip(&self.rates))
            .map(|(did, rates)| seconds(did.waited) - rates.start.value().unwrap_or(0.0))
            .fold(0.0, f64::max);
        let waited = if report.moved > 0 { waited } else { 0.0 };
        seconds(report.duration) - waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::ChunkDone;

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

    const USUAL: Conditions = Conditions {
        anew: false,
        unstreamed: true,
        telling: true,
        disturbed: false,
    };

    fn pace(beside: impl Into<Option<f64>>, alone: impl Into<Option<f64>>) -> PoolRates {
        PoolRates {
            beside: beside.into(),
            alone: alone.into(),
        }
    }

    fn known() -> RateEstimates {
        let mut rates = RateEstimates::default();
        for _ in 0..3 {
            assert!(!rates.observe_pace(pace(80.0, 100.0), USUAL));
        }
        rates
    }

    /// A chunk of `units` done from `from` to `to` microseconds.
    fn chunk(units: u64, from: u64, to: u64) -> ChunkDone {
        ChunkDone {
            step: 0,
            device: 0,
            units,
            held: false,
            issued: 0,
            started: from * 1000,
            ended: to * 1000,
        }
    }

    #[test]
    fn both_rates_are_seen_in_a_step_of_two_parts() {
        let mut progress = Progress::default();
        progress.completed(&chunk(100, 0, 100), Some(0));
        progress.completed(&chunk(100, 100, 300), None);
        let learned = PoolRates::of(&progress, &known(), 4);
        assert_eq!(learned, pace(0.5e6, 1e6));
    }

    #[test]
    fn small_parts_of_a_step_tell_only_what_is_not_known() {
        let mut progress = Progress::default();
        progress.completed(&chunk(100, 0, 200), None);
        progress.completed(&chunk(16, 200, 216), Some(200_000));
        assert_eq!(PoolRates::of(&progress, &known(), 4), pace(0.5e6, None));
        let nothing = RateEstimates::default();
        let alone = PoolRates::of(&progress, &nothing, 4).alone;
        assert_eq!(alone.map(f64::round), Some(1e6));
    }

    #[test]
    fn planned_conditions_count_at_once_and_unplanned_ones_do_not() {
        let mut rates = known();
        rates.observe_pace(pace(None, 100.0), USUAL);
        rates.observe_pace(pace(40.0, 100.0), USUAL);
        assert_eq!(rates.pool.value(), Some(80.0));
        rates.observe_pace(pace(None, 100.0), USUAL);
        let streaming = Conditions {
            unstreamed: false,
            ..USUAL
        };
        rates.observe_pace(pace(40.0, 100.0), streaming);
        assert_eq!(rates.pool.value(), Some(40.0));
        assert_eq!(rates.alone.value(), Some(100.0));
    }

    #[test]
    fn a_step_in_which_units_move_does_not_end_what_was_known() {
        let moved = Conditions {
            disturbed: true,
            ..USUAL
        };
        let mut rates = known();
        rates.observe_pace(pace(None, 100.0), USUAL);
        rates.observe_pace(pace(None, None), moved);
        rates.observe_pace(pace(None, 110.0), USUAL);
        assert_eq!(rates.alone.value(), Some(100.0));
        // Nor does it clear a suspicion.
        rates.observe_pace(pace(None, 50.0), USUAL);
        rates.observe_pace(pace(None, None), moved);
        assert!(rates.observe_pace(pace(None, 50.0), USUAL));
    }

    #[test]
    fn too_little_to_tell_is_no_change() {
        let mut rates = known();
        let little = Conditions {
            telling: false,
            ..USUAL
        };
        for _ in 0..3 {
            assert!(!rates.observe_pace(pace(20.0, None), little));
        }
    }

    fn seen(units: f64, more: f64, speed: f64) -> Kernels {
        Kernels {
            units,
            more,
            chunks: 0.0,
            streamed: 0.0,
            seconds: (units / 11.0 + more * 7.4) / speed,
        }
    }

    #[test]
    fn two_plans_tell_the_cost() {
        let mut launches = LaunchCost::default();
        launches.learn(seen(8000.0, 0.0, 1.0));
        assert_eq!(launches.seconds(), 0.0);
        launches.learn(seen(15_800.0, 47.0, 1.0));
        assert!((launches.seconds() - 7.4).abs() < 1e-9);
        // One with about as many launches tells nothing, in whatever order.
        launches.learn(seen(8000.0, 1.0, 1.02));
        assert!((launches.seconds() - 7.4).abs() < 1e-9);
    }

    #[test]
    fn what_came_before_a_change_is_not_compared() {
        let mut launches = LaunchCost::default();
        launches.learn(seen(8000.0, 0.0, 1.0));
        launches.learn(seen(15_800.0, 47.0, 1.0));
        launches.start_over();
        launches.learn(seen(15_800.0, 47.0, 0.5));
        assert!((launches.seconds() - 7.4).abs() < 1e-9);
    }

    #[test]
    fn it_is_never_negative_nor_everything() {
        let mut launches = LaunchCost::default();
        launches.learn(seen(8000.0, 0.0, 1.0));
        launches.learn(seen(15_800.0, 47.0, 2.0));
        assert_eq!(launches.seconds(), 0.0);
        let mut launches = LaunchCost::default();
        launches.learn(seen(8000.0, 0.0, 1e3));
        launches.learn(seen(15_800.0, 47.0, 1.0));
        let whole = seen(15_800.0, 47.0, 1.0);
        assert!(launches.seconds() <= 0.9 * whole.seconds / 47.0);
    }
}

//! The active set: the devices that compute. A *trial* changes it for a measurement.
//!
//! A device can lengthen the steps by its halos, its barrier and its use of shared
//! memory. Streams can cost more or less than the rate estimates say. The estimates do
//! not show these costs, so DAWL measures them: it runs one step with one device more
//! or fewer, or a few steps with or without streams. It keeps the change if it pays.

use super::partition::Partition;
use super::rates::RateEstimates;
use super::{Dawl, LEARNING};

/// Steps between two trials of the same change. The number doubles each time.
const PATIENCE: u32 = 64;
/// Least relative gain that a trial must promise.
pub const PROMISE: f64 = 0.02;
/// Steps of a trial of streams, after a first one that does not count.
pub const STREAMING_STEPS: u32 = 4;
/// A trial of several steps ends early if its steps take longer than the reference by this
/// factor.
const TOO_LONG: f64 = 1.2;
/// A decision is of other conditions if steps take so many times what they took then.
const CLEARLY: f64 = 1.1;

/// What a trial changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A device joins or leaves the active set.
    Device(usize),
    /// Devices start or stop streaming.
    Streaming(bool),
}

/// A change that is measured for one or a few steps.
#[derive(Clone, Debug)]
pub struct Trial {
    change: Change,
    /// The first step that counts, the number of measured steps, and the seconds of the
    /// fastest one.
    from: u32,
    steps: u32,
    fastest: f64,
    /// Seconds of a step before the trial.
    reference: f64,
    /// The estimates before the trial, if they are not valid during it.
    rates: Option<Vec<RateEstimates>>,
}

impl Trial {
    /// Records the seconds of a step that has ended.
    pub fn observe(&mut self, step: u32, seconds: f64) {
        let counts = match self.change {
            Change::Device(_) => step == self.from,
            Change::Streaming(_) => step >= self.from,
        };
        if counts {
            self.steps += 1;
            self.fastest = self.fastest.min(seconds);
        }
    }

    fn is_over(&self) -> bool {
        let needed = match self.change {
            Change::Device(_) => 1,
            Change::Streaming(_) => STREAMING_STEPS,
        };
        let is_too_long = self.fastest > TOO_LONG * self.reference;
        self.steps >= needed || self.steps > 0 && is_too_long
    }

    /// Whether the change stays. An additional device or a change of streams must be
    /// clearly faster. One device fewer must not be clearly slower.
    fn has_paid(&self, is_fewer: bool) -> bool {
        let allowed = match is_fewer {
            true => 1.0 + 0.5 * PROMISE,
            false => 1.0 - 0.5 * PROMISE,
        };
        self.fastest <= self.reference * allowed
    }
}

/// The devices that are alive and those that are active, the decision of the last
/// trial about streams, and the current trial.
#[derive(Clone, Debug)]
pub struct ActiveSet {
    alive: Vec<bool>,
    works: Vec<bool>,
    /// The first step in which a trial may change the device.
    again: Vec<u32>,
    patience: Vec<u32>,
    /// Whether devices stream, the step until which that decision holds, and what a step took.
    streams: Option<(bool, u32, f64)>,
    pub trial: Option<Trial>,
}

impl ActiveSet {
    pub fn new(devices: usize) -> Self {
        Self {
            alive: vec![true; devices],
            works: vec![true; devices],
            again: vec![0; devices],
            patience: vec![PATIENCE; devices],
            streams: None,
            trial: None,
        }
    }

    pub fn works(&self, device: usize) -> bool {
        self.works[device]
    }

    pub fn is_alive(&self, device: usize) -> bool {
        self.alive[device]
    }

    /// The active devices (if `working`) or the inactive ones that a trial in `step` may
    /// change.
    pub fn candidates(&self, step: u32, working: bool) -> Vec<usize> {
        (0..self.works.len())
            .filter(|d| self.alive[*d] && self.works[*d] == working && step >= self.again[*d])
            .collect()
    }

    /// Whether devices stream in `step`; `None` if no trial has decided it.
    pub fn streams(&self, step: u32) -> Option<bool> {
        match self.trial.as_ref().map(|trial| &trial.change) {
            Some(Change::Streaming(streams)) => Some(*streams),
            _ => (self.streams.filter(|(_, until, _)| step < *until)).map(|(streams, ..)| streams),
        }
    }

    /// Forgets the decision about streams if a step is expected to take clearly more than it took
    /// then: it was made under other conditions. `either` are the seconds of a step without
    /// streams and with them.
    pub fn reconsider(&mut self, [unstreamed, streaming]: [f64; 2]) {
        self.streams.take_if(|(streams, _, took)| {
            let seconds = if *streams { streaming } else { unstreamed };
            seconds > CLEARLY * *took
        });
    }

    /// Begins a trial in `step`. `reference` is the seconds of a step before the trial;
    /// `rates` are restored if the trial fails.
    pub fn begin(&mut self, change: Change, step: u32, reference: f64, rates: &[RateEstimates]) {
        let (from, rates) = match change {
            Change::Device(device) => {
                self.works[device] = !self.works[device];
                self.defer(device, step);
                (step, Some(rates.to_vec()))
            }
            Change::Streaming(_) => (step + 1, None),
        };
        self.trial = Some(Trial {
            change,
            from,
            steps: 0,
            fastest: f64::INFINITY,
            reference,
            rates,
        });
    }

    /// Deactivates a device until a trial shows that it pays.
    pub fn leave_out(&mut self, device: usize) {
        self.works[device] = false;
    }

    /// Allows no trial of a device before `step`.
    pub fn rest(&mut self, device: usize, step: u32) {
        self.again[device] = step;
    }

    /// Allows no trial of a device for its waiting time, which doubles.
    pub fn defer(&mut self, device: usize, step: u32) {
        self.again[device] = step.saturating_add(self.patience[device]);
        self.patience[device] = self.patience[device].saturating_mul(2);
    }

    /// Ends a trial that has enough measurements, before `step`. Returns the estimates
    /// to restore if the change did not pay.
    pub fn conclude(&mut self, step: u32) -> Option<Vec<RateEstimates>> {
        let trial = self.trial.take_if(|trial| trial.is_over())?;
        match trial.change {
            Change::Device(device) => {
                if trial.has_paid(!self.works[device]) {
                    return None;
                }
                self.works[device] = !self.works[device];
            }
            Change::Streaming(streams) => {
                let has_paid = trial.has_paid(false);
                let took = trial.fastest.min(trial.reference);
                let until = step.saturating_add(PATIENCE);
                self.streams = Some((streams == has_paid, until, took));
            }
        }
        trial.rates
    }

    /// Cancels the trial. Returns the estimates to restore, if there are any.
    pub fn call_off(self) -> Option<Vec<RateEstimates>> {
        self.trial?.rates
    }

    /// Activates these devices, or all that are alive if none of these is.
    pub fn appoint(&mut self, works: impl Fn(usize) -> bool) {
        self.trial = None;
        for (d, alive) in self.alive.iter().enumerate() {
            self.works[d] = *alive && works(d);
        }
        self.none_but_all();
    }

    /// Forgets all decisions after a lasting change, and activates all devices.
    pub fn start_over(&mut self, step: u32) {
        self.trial = None;
        self.streams = None;
        self.works.clone_from(&self.alive);
        self.patience.fill(PATIENCE);
        self.again.fill(step.saturating_add(1));
    }

    pub fn lost(&mut self, device: usize) {
        self.alive[device] = false;
        self.works[device] = false;
        self.trial = None;
        self.none_but_all();
    }

    /// A lost device is back. All devices are active from `step` on.
    pub fn returned(&mut self, device: usize, step: u32) {
        self.alive[device] = true;
        self.trial = None;
        self.start_over(step);
    }

    fn none_but_all(&mut self) {
        if !self.works.contains(&true) {
            self.works.clone_from(&self.alive);
        }
    }
}

// The choice of trials: which device more or fewer, and whether streams or none,
// promises to pay (step 6). `self` runs and ends a trial.

/// A trial must gain so many times the cost of its moves: one that fails moves the
/// units back.
const TRIAL_PAYS: f64 = 2.0;
/// A device with a smaller share may be left out.
const SMALL_SHARE: f64 = 0.1;
/// Steps that must be left for streams, or none, to be tried.
const LONG: u32 = 40;
/// The same for streams that were never seen but in probes.
const VERY_LONG: u32 = 80;
/// The part of what is left of a run that such a trial may cost, by the rates. It is also tried
/// what it is without each of several devices that all compute on host memory: no rate shows
/// how much memory bandwidth they take from one another.
const TRIAL_COST: f64 = 0.02;

impl Dawl {
    /// Begins the trial that promises to pay, if there is one. `either` are the
    /// seconds of a step without streams and with them.
    pub(super) fn explore(
        &mut self,
        step: u32,
        partition: &Partition,
        either: Option<[f64; 2]>,
    ) -> bool {
        let reference = self.predicted(partition);
        let share = |d: &usize| partition.held[*d] + partition.pooled[*d];
        let small = SMALL_SHARE * self.units as f64;
        let mut leaving = self.active.candidates(step, true);
        let among = self.on_host(partition).filter(|_| step >= LEARNING);
        leaving.retain(|d| among.is_some() || (share(d) as f64) < small);
        leaving.sort_by_key(share);
        for device in leaving {
            let Some((best, without)) = self.at_best_without(device, partition, among) else {
                continue;
            };
            let left = f64::from(self.steps.saturating_sub(step));
            let cost = without.seconds - reference;
            let is_cheap = cost < TRIAL_COST * left * reference;
            if (is_cheap || among.is_none()) && self.pays(step, reference, best, &without) {
                let change = Change::Device(device);
                self.active.begin(change, step, reference, &self.rates);
                return true;
            }
        }
        for device in self.active.candidates(step, false) {
            if self.would_help(step, device, reference) {
                let change = Change::Device(device);
                self.active.begin(change, step, reference, &self.rates);
                return true;
            }
            self.active.defer(device, step);
        }
        either.is_some_and(|either| self.try_streams(step, either))
    }

    /// Begins a trial of streams where there are none, or of none where there are, if
    /// it costs little by the rates. In a very long run, streams that only probes have
    /// seen are tried in any case: probes of a bad moment would rule them out for good.
    fn try_streams(&mut self, step: u32, [unstreamed, streaming]: [f64; 2]) -> bool {
        let streams = self.unstreamed.is_none();
        let is_seen = self.alike.steps >= STREAMING_STEPS;
        if !is_seen || self.active.streams(step).is_some() {
            return false;
        }
        let (stay, change) = match streams {
            true => (streaming, unstreamed),
            false => (unstreamed, streaming),
        };
        let left = self.steps.saturating_sub(step);
        let cost = f64::from(STREAMING_STEPS + 1) * (change - stay);
        let is_cheap = left >= LONG && cost < TRIAL_COST * f64::from(left) * stay;
        let is_unknown = !streams && !self.has_streamed && left >= VERY_LONG;
        if is_cheap || is_unknown {
            let reference = self.alike.fastest;
            self.active
                .begin(Change::Streaming(!streams), step, reference, &[]);
        }
        is_cheap || is_unknown
    }

    /// Whether a trial of a partition that takes `seconds` promises to pay.
    fn pays(&self, step: u32, reference: f64, seconds: f64, to: &Partition) -> bool {
        let remaining = f64::from(self.steps.saturating_sub(step));
        let gain = reference - seconds;
        gain > PROMISE * reference && gain * remaining > TRIAL_PAYS * self.moving(&to.held)
    }

    /// Whether adding `device` to the active set promises to pay.
    pub(super) fn would_help(&self, step: u32, device: usize, reference: f64) -> bool {
        let with = self.together(&self.with_other(device));
        with.is_some_and(|with| self.pays(step, reference, with.seconds, &with))
    }

    /// Predicted seconds of a step with this partition, its barrier included.
    pub(super) fn predicted(&self, partition: &Partition) -> f64 {
        partition.seconds + self.barrier.value().unwrap_or(0.0)
    }

    /// The least time that a step without `device` could take, and its partition. The others get
    /// at most the memory bandwidth that `device` used, `among` so many devices on host memory.
    fn at_best_without(
        &self,
        device: usize,
        partition: &Partition,
        among: Option<usize>,
    ) -> Option<(f64, Partition)> {
        let without = self.together(&self.with_other(device))?;
        let share_the_host = partition.pooled[device] > 0
            && (partition.pooled.iter().enumerate()).any(|(d, units)| d != device && *units > 0);
        let relief = match (share_the_host, among) {
            // At most an equal part of the bandwidth.
            (true, Some(count)) => 1.0 / count as f64,
            (true, None) => partition.pooled[device] as f64 / self.units as f64,
            (false, _) => 0.0,
        };
        Some((without.seconds * (1.0 - relief), without))
    }

    /// The number of devices with work, if they are several and all on host memory.
    fn on_host(&self, partition: &Partition) -> Option<usize> {
        let works = |d: &usize| partition.held[*d] + partition.pooled[*d] > 0;
        let working = (0..self.devices.len()).filter(works);
        let all = (working.clone()).all(|d| self.devices[d].capacity.is_none());
        let count = working.count();
        (all && count > 1).then_some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(seconds: f64) -> ActiveSet {
        let mut active = ActiveSet::new(2);
        active.begin(Change::Device(0), 2, 1.0, &[RateEstimates::default()]);
        assert!(!active.works(0) && active.works(1));
        active.trial.as_mut().unwrap().observe(2, seconds);
        active
    }

    #[test]
    fn a_device_stays_inactive_if_steps_are_faster_without_it() {
        let mut active = tried(0.95);
        assert!(active.conclude(3).is_none());
        assert!(!active.works(0) && active.works(1));
    }

    #[test]
    fn a_device_is_activated_again_if_steps_are_slower_without_it() {
        let mut active = tried(1.05);
        assert!(active.conclude(3).is_some());
        assert!(active.works(0));
        assert!(active.candidates(3, true).iter().all(|d| *d != 0));
    }

    #[test]
    fn starting_over_activates_all_devices_that_are_not_lost() {
        let mut active = ActiveSet::new(3);
        active.lost(2);
        active.begin(Change::Device(0), 5, 1.0, &[]);
        active.start_over(6);
        assert!(active.works(0) && active.works(1) && !active.works(2));
    }

    #[test]
    fn inactive_devices_are_activated_if_all_active_ones_are_lost() {
        let mut active = tried(0.9);
        active.conclude(3);
        active.lost(1);
        assert!(active.works(0));
    }

    /// After a trial of streams whose steps took these seconds. The first does not count.
    fn streamed(seconds: &[f64]) -> ActiveSet {
        let mut active = ActiveSet::new(2);
        active.begin(Change::Streaming(true), 10, 1.0, &[]);
        assert_eq!(active.streams(10), Some(true));
        for (step, seconds) in (10..).zip(seconds) {
            active.trial.as_mut().unwrap().observe(step, *seconds);
        }
        active
    }

    #[test]
    fn streams_that_pay_are_kept_for_a_while() {
        let mut active = streamed(&[2.0, 0.97, 1.0, 1.0, 1.0]);
        assert!(active.conclude(15).is_none());
        assert_eq!(active.streams(15), Some(true));
        assert_eq!(active.streams(15 + PATIENCE), None);
    }

    #[test]
    fn streams_that_do_not_pay_end_and_much_slower_ones_end_early() {
        for seconds in [&[1.0; 5][..], &[2.0, 1.3]] {
            let mut active = streamed(seconds);
            active.conclude(15);
            assert_eq!(active.streams(15), Some(false));
        }
        let mut active = streamed(&[2.0, 1.1]);
        active.conclude(12);
        assert_eq!(active.streams(12), Some(true), "too few steps");
    }
}

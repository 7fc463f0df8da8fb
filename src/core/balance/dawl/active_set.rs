//! The active set: the devices that compute. A *trial* changes it for a measurement.
//!
//! A device can lengthen the steps by its halos, its barrier and its use of shared
//! memory. Streams can cost more or less than the rate estimates say. The estimates do
//! not show these costs, so DAWL measures them: it runs one step with one device more
//! or fewer, or a few steps with or without streams. It keeps the change if it pays.

use super::rates::RateEstimates;

/// Steps between two trials of the same change. The number doubles each time.
const PATIENCE: u32 = 64;
/// Least relative gain that a trial must promise.
pub const PROMISE: f64 = 0.02;
/// Steps of a trial of streams, after a first one that does not count.
pub const STREAMING_STEPS: u32 = 4;
/// Steps of a trial of devices that have joined, after a first one that does not count.
const JOINED_STEPS: u32 = 2;
/// A trial of several steps ends early if its steps take longer than the reference by this
/// factor.
const TOO_LONG: f64 = 1.2;

/// What a trial changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A device joins or leaves the active set.
    Device(usize),
    /// The shares say that more devices work than these. They begin at once, since other
    /// measurements than a trial have led to it.
    Joined(Vec<bool>),
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
            Change::Streaming(_) | Change::Joined(_) => step >= self.from,
        };
        if counts {
            self.steps += 1;
            self.fastest = self.fastest.min(seconds);
        }
    }

    fn is_over(&self) -> bool {
        let needed = match self.change {
            Change::Device(_) => 1,
            Change::Joined(_) => JOINED_STEPS,
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
    /// Whether devices stream, and the step until which that decision holds.
    streams: Option<(bool, u32)>,
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

    /// The only active device, if there is only one.
    pub fn lone(&self) -> Option<usize> {
        let mut working = (0..self.works.len()).filter(|d| self.works[*d]);
        working.next().filter(|_| working.next().is_none())
    }

    /// The active devices (if `working`) or the inactive ones that a trial in `step` may
    /// change.
    pub fn candidates(&self, step: u32, working: bool) -> Vec<usize> {
        (0..self.works.len())
            .filter(|d| self.alive[*d] && self.works[*d] == working && step >= self.again[*d])
            .collect()
    }

    /// The first step in which an inactive device may be tried again.
    pub fn next_try(&self) -> Option<u32> {
        (0..self.works.len())
            .filter(|d| self.alive[*d] && !self.works[*d])
            .map(|d| self.again[d])
            .min()
    }

    /// Whether devices stream in `step`; `None` if no trial has decided it.
    pub fn streams(&self, step: u32) -> Option<bool> {
        match self.trial.as_ref().map(|trial| &trial.change) {
            Some(Change::Streaming(streams)) => Some(*streams),
            _ => (self.streams.filter(|(_, until)| step < *until)).map(|(streams, _)| streams),
        }
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
            Change::Joined(_) => (step + 1, Some(rates.to_vec())),
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
            Change::Joined(ref before) => {
                if trial.has_paid(false) {
                    return None;
                }
                for device in (0..before.len()).filter(|device| !before[*device]) {
                    self.works[device] = false;
                    self.defer(device, step);
                }
            }
            Change::Streaming(streams) => {
                let streams = streams == trial.has_paid(false);
                self.streams = Some((streams, step.saturating_add(PATIENCE)));
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

    /// Forgets all decisions after a lasting change, and activates all devices. Devices
    /// that have joined are still compared with the steps before: their own rates are what
    /// changes most.
    pub fn start_over(&mut self, step: u32) {
        let trial = self.trial.take();
        self.trial = trial.filter(|trial| matches!(trial.change, Change::Joined(_)));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(seconds: f64) -> ActiveSet {
        let mut active = ActiveSet::new(2);
        active.begin(Change::Device(0), 2, 1.0, &[RateEstimates::default()]);
        assert_eq!(active.lone(), Some(1));
        active.trial.as_mut().unwrap().observe(2, seconds);
        active
    }

    #[test]
    fn a_device_stays_inactive_if_steps_are_faster_without_it() {
        let mut active = tried(0.95);
        assert!(active.conclude(3).is_none());
        assert_eq!(active.lone(), Some(1));
        assert_eq!(active.next_try(), Some(2 + PATIENCE));
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

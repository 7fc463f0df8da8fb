//! The active set, and trials. A device can cost more than it helps, because of halos,
//! of a barrier with several devices and of shared memory; streams can cost more or
//! less than the estimates of rates say. The estimates do not show that, so a
//! *trial* does: a step with one device more or fewer, or a few steps with or
//! without streams. The change stays if it pays, and is undone if it does not.

use super::rates::RateEstimates;

/// Steps after which a decision is tried again; doubled each time.
const PATIENCE: u32 = 64;
/// Least relative gain that a trial must promise.
pub const PROMISE: f64 = 0.02;
/// Steps of a trial of streams, after a first one that does not count.
pub const STREAMING_STEPS: u32 = 4;
/// A trial of streams ends early where steps take so many times the reference.
const TOO_LONG: f64 = 1.2;

/// What a trial changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A device joins or leaves the active set.
    Device(usize),
    /// Devices stream from now on, or cease to.
    Streaming(bool),
}

/// One change, tried for a step or a few.
#[derive(Clone, Debug)]
pub struct Trial {
    change: Change,
    /// First step that counts, the number of steps measured and the fastest one's
    /// seconds.
    from: u32,
    steps: u32,
    fastest: f64,
    /// Seconds of a step before.
    reference: f64,
    /// The estimates before, if they do not hold during the trial.
    rates: Option<Vec<RateEstimates>>,
}

impl Trial {
    /// A step has ended.
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

    /// Whether the change stays. A device more, and other streams, must be clearly
    /// better; a device fewer must not be clearly worse.
    fn has_paid(&self, is_fewer: bool) -> bool {
        let allowed = match is_fewer {
            true => 1.0 + 0.5 * PROMISE,
            false => 1.0 - 0.5 * PROMISE,
        };
        self.fastest <= self.reference * allowed
    }
}

/// The devices that are alive and those that are active, whether devices stream
/// where a trial has decided that, and the present trial.
#[derive(Clone, Debug)]
pub struct ActiveSet {
    alive: Vec<bool>,
    works: Vec<bool>,
    /// First step in which changing a device's part may be tried.
    again: Vec<u32>,
    patience: Vec<u32>,
    /// Whether devices stream, and until which step that is settled.
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

    /// The devices, active or not, whose part may be changed in `step`.
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

    /// Whether devices stream in `step`, where a trial says so or has decided it.
    pub fn streams(&self, step: u32) -> Option<bool> {
        match self.trial.as_ref().map(|trial| trial.change) {
            Some(Change::Streaming(streams)) => Some(streams),
            _ => (self.streams.filter(|(_, until)| step < *until)).map(|(streams, _)| streams),
        }
    }

    /// Begins a trial in `step`. `reference` is the seconds of a step before, `rates`
    /// the estimates to go back to.
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

    /// Keeps a device's part until `step`.
    pub fn rest(&mut self, device: usize, step: u32) {
        self.again[device] = step;
    }

    /// Keeps a device's part for its patience, which doubles.
    pub fn defer(&mut self, device: usize, step: u32) {
        self.again[device] = step.saturating_add(self.patience[device]);
        self.patience[device] = self.patience[device].saturating_mul(2);
    }

    /// Ends a trial that has been measured, before `step`. Returns the estimates to go
    /// back to where it did not pay.
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
                let streams = streams == trial.has_paid(false);
                self.streams = Some((streams, step.saturating_add(PATIENCE)));
            }
        }
        trial.rates
    }

    /// The estimates before a trial that is called off, if they are to be restored.
    pub fn call_off(self) -> Option<Vec<RateEstimates>> {
        self.trial?.rates
    }

    /// Activates these devices; all that are alive where none of them is.
    pub fn appoint(&mut self, works: impl Fn(usize) -> bool) {
        self.trial = None;
        for (d, alive) in self.alive.iter().enumerate() {
            self.works[d] = *alive && works(d);
        }
        self.none_but_all();
    }

    /// After a lasting change nothing is settled: all devices are active.
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
    fn a_device_without_which_it_goes_faster_stays_out() {
        let mut active = tried(0.95);
        assert!(active.conclude(3).is_none());
        assert_eq!(active.lone(), Some(1));
        assert_eq!(active.next_try(), Some(2 + PATIENCE));
    }

    #[test]
    fn a_device_that_is_missed_comes_back() {
        let mut active = tried(1.05);
        assert!(active.conclude(3).is_some());
        assert!(active.works(0));
        assert!(active.candidates(3, true).iter().all(|d| *d != 0));
    }

    #[test]
    fn a_change_brings_everyone_back_but_the_lost() {
        let mut active = ActiveSet::new(3);
        active.lost(2);
        active.begin(Change::Device(0), 5, 1.0, &[]);
        active.start_over(6);
        assert!(active.works(0) && active.works(1) && !active.works(2));
    }

    #[test]
    fn when_all_at_work_are_lost_those_left_out_come_in() {
        let mut active = tried(0.9);
        active.conclude(3);
        active.lost(1);
        assert!(active.works(0));
    }

    /// After a trial of streams whose steps took so long, the first one not counted.
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
    fn streams_that_do_not_are_given_up_and_bad_ones_at_once() {
        for seconds in [&[1.0; 5][..], &[2.0, 1.3]] {
            let mut active = streamed(seconds);
            active.conclude(15);
            assert_eq!(active.streams(15), Some(false));
        }
        let mut active = streamed(&[2.0, 1.1]);
        active.conclude(12);
        assert_eq!(active.streams(12), Some(true), "not seen often enough");
    }
}

//! The active set: the devices that take part. A device can cost more than it helps,
//! because of halos, of a barrier with several devices and of shared memory. The
//! estimates of rates do not show that, so a trial step without the device does.

use super::rates::RateEstimates;

/// Steps after which a decision is tried again; doubled each time.
const PATIENCE: u32 = 64;
/// Least relative gain that a trial must promise.
pub const PROMISE: f64 = 0.02;

/// A trial: a step with one device more or fewer.
#[derive(Clone, Debug)]
pub struct Trial {
    pub step: u32,
    pub device: usize,
    /// Seconds of a step before, and of the trial once measured.
    reference: f64,
    pub seconds: Option<f64>,
    /// The estimates before.
    rates: Vec<RateEstimates>,
}

/// The devices that are alive, and those that are active.
#[derive(Clone, Debug)]
pub struct ActiveSet {
    alive: Vec<bool>,
    works: Vec<bool>,
    /// First step in which changing a device's part may be tried.
    again: Vec<u32>,
    patience: Vec<u32>,
    pub trial: Option<Trial>,
}

impl ActiveSet {
    pub fn new(devices: usize) -> Self {
        Self {
            alive: vec![true; devices],
            works: vec![true; devices],
            again: vec![0; devices],
            patience: vec![PATIENCE; devices],
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

    /// Begins a trial with `device`'s part changed.
    pub fn try_other(&mut self, step: u32, device: usize, reference: f64, rates: &[RateEstimates]) {
        self.works[device] = !self.works[device];
        self.defer(device, step);
        self.trial = Some(Trial {
            step,
            device,
            reference,
            seconds: None,
            rates: rates.to_vec(),
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

    /// Ends a trial that has been measured. Returns the estimates before it where it
    /// did not pay.
    pub fn conclude(&mut self) -> Option<Vec<RateEstimates>> {
        let seconds = self.trial.as_ref()?.seconds?;
        let trial = self.trial.take()?;
        // Without a device, the step must not be clearly worse; with one more, it must
        // be clearly better.
        let allowed = match self.works[trial.device] {
            false => 1.0 + 0.5 * PROMISE,
            true => 1.0 - 0.5 * PROMISE,
        };
        if seconds <= trial.reference * allowed {
            return None;
        }
        self.works[trial.device] = !self.works[trial.device];
        Some(trial.rates)
    }

    /// The estimates before a trial that is called off, if there is one.
    pub fn call_off(self) -> Option<Vec<RateEstimates>> {
        self.trial.map(|trial| trial.rates)
    }

    /// Activates these devices; all that are alive where none of them is.
    pub fn appoint(&mut self, works: impl Fn(usize) -> bool) {
        self.trial = None;
        for (d, alive) in self.alive.iter().enumerate() {
            self.works[d] = *alive && works(d);
        }
        self.none_but_all();
    }

    /// Activates all devices, after a lasting change.
    pub fn start_over(&mut self, step: u32) {
        self.trial = None;
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
        active.try_other(
            2,
            0,
            1.0,
            &[RateEstimates::default(), RateEstimates::default()],
        );
        assert_eq!(active.lone(), Some(1));
        if let Some(trial) = &mut active.trial {
            trial.seconds = Some(seconds);
        }
        active
    }

    #[test]
    fn a_device_without_which_it_goes_faster_stays_out() {
        let mut active = tried(0.95);
        assert!(active.conclude().is_none());
        assert_eq!(active.lone(), Some(1));
        assert_eq!(active.next_try(), Some(2 + PATIENCE));
    }

    #[test]
    fn a_device_that_is_missed_comes_back() {
        let mut active = tried(1.05);
        assert!(active.conclude().is_some());
        assert!(active.works(0));
        assert!(active.candidates(3, true).iter().all(|d| *d != 0));
    }

    #[test]
    fn a_change_brings_everyone_back_but_the_lost() {
        let mut active = ActiveSet::new(3);
        active.lost(2);
        active.try_other(5, 0, 1.0, &[]);
        active.start_over(6);
        assert!(active.works(0) && active.works(1) && !active.works(2));
    }

    #[test]
    fn when_all_at_work_are_lost_those_left_out_come_in() {
        let mut active = tried(0.9);
        active.conclude();
        active.lost(1);
        assert!(active.works(0));
    }
}

//! One device alone. Where it holds everything it waits for nobody: its steps
//! follow one another as fast as they are computed, or enqueued, while a step of
//! several ends with a barrier. So who helps has to make good for that, too.

use super::Dawl;
use super::partition::Partition;

/// Who would gain less than this for the others does not take part at first:
/// waiting for one another costs about as much, and nothing has shown it yet.
/// (An H200 alone 1.07 ms a step, with 16 cores that do 3 % of it 1.10 ms.)
const MARGINAL: f64 = 0.05;
/// How many times as fast as a short probe says a device may turn out to be.
const ROUGH: f64 = 2.0;

/// Steps for which a device that probes have shown to be best alone is left to
/// itself. To try another costs some of its steps.
const ALONE_FOR: u32 = 512;

impl Dawl {
    /// Leaves out, before the first step, who hardly helps: one after the other
    /// the one that is missed least, or all but one.
    pub(super) fn without_the_marginal(&mut self, partition: Partition) -> Partition {
        let mut best = partition;
        // What was not probed for want of doubt must not be guessed now.
        let clearly = self.clearly_alone();
        if let Some((device, lone)) = clearly.and_then(|d| Some((d, self.lone_partition(d)?))) {
            let others = self.but(device);
            others.into_iter().for_each(|d| self.active.leave_out(d));
            best = lone;
        }
        let is_lone = (self.lone_holder(None)).is_some_and(|d| self.enqueue[d].is_some());
        self.alone = is_lone && self.knows_all();
        if self.alone {
            (0..self.devices.len()).for_each(|device| self.active.rest(device, ALONE_FOR));
        }
        best
    }

    /// The device that alone is the best that can be, though the others be twice
    /// as fast as they seem; `None` if none is.
    pub(super) fn clearly_alone(&self) -> Option<usize> {
        let lone = |d: usize| self.alone_seconds(d, 1.0).map(|seconds| (d, seconds));
        let lone = (self.at_work().filter_map(lone)).min_by(|a, b| a.1.total_cmp(&b.1));
        let (device, seconds) = lone?;
        let others = || self.at_work().filter(|d| *d != device);
        let beaten = |d: usize| {
            self.alone_seconds(d, ROUGH)
                .is_none_or(|other| seconds < other)
        };
        let rate = |d: usize| match self.capacity(d) {
            0 => self.known_pool_rate(d, false),
            _ => self.rates[d].held.value(),
        };
        let own = rate(device)?;
        let helping: f64 = others().filter_map(rate).sum::<f64>() * ROUGH;
        let barrier = self.rates[device].overhead.value().unwrap_or(0.0);
        let together = barrier + self.units as f64 / (own + helping);
        let clearly = others().all(beaten) && seconds <= (1.0 + MARGINAL) * together;
        clearly.then_some(device)
    }

    /// Seconds of a step that `device` computes by itself, were it `faster`
    /// times as fast; `None` where it cannot, or not without streaming.
    fn alone_seconds(&self, device: usize, faster: f64) -> Option<f64> {
        let seconds = |rate: f64| self.units as f64 / (rate * faster);
        match self.capacity(device) {
            0 => {
                let overhead = self.rates[device].overhead.value().unwrap_or(0.0);
                Some(overhead + seconds(self.known_pool_rate(device, false)?))
            }
            capacity if capacity >= self.units => {
                let enqueue = self.enqueue[device].unwrap_or(0.0);
                let rates = &self.rates[device];
                let launches = self.more_launches(device, self.units) * rates.launch.seconds();
                Some((launches + seconds(rates.held.value()?)).max(enqueue))
            }
            _ => None,
        }
    }

    /// A step by `device` alone.
    fn lone_partition(&self, device: usize) -> Option<Partition> {
        let seconds = self.alone_seconds(device, 1.0)?;
        let mut own = vec![0; self.devices.len()];
        own[device] = self.units;
        let none = vec![0; self.devices.len()];
        let (held, pooled) = match self.capacity(device) {
            0 => (none, own),
            _ => (own, none),
        };
        Some(Partition {
            held,
            pooled,
            seconds,
        })
    }

    /// The device that alone takes part, once `other`'s part in the work has
    /// changed, if it can hold everything.
    pub(super) fn lone_holder(&self, other: Option<usize>) -> Option<usize> {
        let works = |d: &usize| self.active.works(*d) != (other == Some(*d));
        let mut working = (0..self.devices.len()).filter(works);
        let lone = working.next().filter(|_| working.next().is_none());
        lone.filter(|d| self.capacity(*d) >= self.units)
    }

    /// Seconds that enqueueing a step takes where one device holds everything;
    /// else it is hidden, or overhead.
    pub(super) fn enqueued(&self, partition: &Partition) -> f64 {
        let holder = partition.held.iter().position(|held| *held == self.units);
        holder.and_then(|d| self.enqueue[d]).unwrap_or(0.0)
    }

    /// Whether, as things are, somebody who was left out would be tried again in
    /// `step`.
    pub(super) fn would_take_in(&self, step: u32) -> bool {
        let Some(partition) = self.together(None) else {
            return true;
        };
        let reference = self.predicted(&partition);
        let candidates = self.active.candidates(step, false);
        (candidates.into_iter()).any(|device| self.would_help(step, device, reference))
    }

    fn capacity(&self, device: usize) -> u64 {
        self.devices[device].capacity.unwrap_or(0)
    }

    fn at_work(&self) -> impl Iterator<Item = usize> {
        (0..self.devices.len()).filter(|d| self.active.works(*d))
    }

    /// All that work, but one.
    fn but(&self, device: usize) -> Vec<usize> {
        self.at_work().filter(|d| *d != device).collect()
    }
}

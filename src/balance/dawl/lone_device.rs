//! A lone device: one that computes all units. If it holds them all, its steps follow
//! one another without barriers, as fast as they are computed or enqueued. Helpers
//! must gain more than the barriers cost.

use super::Dawl;
use super::partition::Partition;

/// Helpers that gain less than this are left out at first: co-running costs about as
/// much.
const MARGINAL: f64 = 0.05;
/// A device may be so many times as fast as a short probe shows.
const ROUGH: f64 = 2.0;

/// Steps for which no other device is tried beside one that probes have shown to be
/// best alone.
const ALONE_FOR: u32 = 512;

impl Dawl {
    /// Leaves out all other devices, before the first step, where one is clearly best
    /// alone.
    pub(super) fn without_the_marginal(&mut self, partition: Partition) -> Partition {
        let mut best = partition;
        // Devices that were not probed, since this was clear, must not be estimated now.
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

    /// The device that alone is best even if all others are twice as fast as probed;
    /// `None` if there is none.
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

    /// Seconds of a step that `device` computes alone, if it is `faster` times as fast
    /// as estimated; `None` where it would have to stream, or its rate is unknown.
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

    /// The only active device, once `other` has joined or left, if it can hold all
    /// units.
    pub(super) fn lone_holder(&self, other: Option<usize>) -> Option<usize> {
        let works = |d: &usize| self.active.works(*d) != (other == Some(*d));
        let mut working = (0..self.devices.len()).filter(works);
        let lone = working.next().filter(|_| working.next().is_none());
        lone.filter(|d| self.capacity(*d) >= self.units)
    }

    /// Seconds of enqueueing a step where one device holds all units. In other steps,
    /// enqueueing overlaps or is part of the overhead.
    pub(super) fn enqueued(&self, partition: &Partition) -> f64 {
        let holder = partition.held.iter().position(|held| *held == self.units);
        holder.and_then(|d| self.enqueue[d]).unwrap_or(0.0)
    }

    /// Whether an inactive device would be tried in `step`, by the present estimates.
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

    /// All active devices but one.
    fn but(&self, device: usize) -> Vec<usize> {
        self.at_work().filter(|d| *d != device).collect()
    }
}

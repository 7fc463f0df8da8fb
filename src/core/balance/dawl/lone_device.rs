//! A lone device: one that computes all units. If it holds them all, its steps follow
//! one another without barriers, as fast as they are computed or enqueued. So do those of
//! several devices that hold all units and copy to each other directly. Helpers must gain
//! more than the barriers cost, and what passes through host memory for them.

use super::Dawl;
use super::partition::Partition;
use super::shares::DISTINCT;

/// Helpers that gain less than this are left out at first: co-running costs about as
/// much.
const MARGINAL: f64 = 0.05;
/// Results that a pool reads in each step are many from this part of all units' data on. Edges
/// of a stencil are fewer, the vector of a product is more.
const MANY: f64 = 0.01;
/// A device may be so many times as fast as a short probe shows.
const ROUGH: f64 = 2.0;

/// Steps for which no other device is tried beside one that probes have shown to be
/// best alone.
const ALONE_FOR: u32 = 512;

impl Dawl {
    /// Leaves out all other devices, before `step`, where one is clearly best alone, or those
    /// that hold all units are.
    pub(super) fn without_the_marginal(&mut self, step: u32, partition: Partition) -> Partition {
        let mut best = partition;
        // Devices that were not probed, since this was clear, must not be estimated now.
        if let Some((devices, alone)) = self.clearly_alone() {
            let others: Vec<usize> = self.at_work().filter(|d| !devices.contains(d)).collect();
            others.into_iter().for_each(|d| self.active.leave_out(d));
            best = alone;
        }
        let all_hold = self.lone_holder(None).is_some() || self.all_hold(None);
        self.alone = all_hold && self.at_work().all(|d| self.enqueue[d].is_some());
        self.alone &= self.knows_all();
        if self.alone {
            let until = step.saturating_add(ALONE_FOR);
            (0..self.devices.len()).for_each(|device| self.active.rest(device, until));
        }
        best
    }

    /// The device that alone is best even if all others are twice as fast as probed, or the
    /// devices that are so since they hold all units, and their step; `None` if there are
    /// none.
    pub(super) fn clearly_alone(&self) -> Option<(Vec<usize>, Partition)> {
        let lone = |d: usize| Some((vec![d], self.lone_partition(d)?));
        let lone = self.at_work().filter_map(lone);
        let best = lone.chain(self.holders_partition());
        let best = best.min_by(|(_, a), (_, b)| a.seconds.total_cmp(&b.seconds));
        let (devices, partition) = best?;
        let seconds = partition.seconds;
        let others = || self.at_work().filter(|d| !devices.contains(d));
        let beaten = |d: usize| {
            self.alone_seconds(d, self.rough(d, &devices))
                .is_none_or(|other| seconds < other)
        };
        let rate = |d: usize| match self.capacity(d) {
            0 => self.known_pool_rate(d, false),
            _ => self.rates[d].held.value(),
        };
        let own: Option<f64> = devices.iter().map(|d| rate(*d)).sum();
        let helping = |d: usize| Some(rate(d)? * self.rough(d, &devices));
        let helping: f64 = others().filter_map(helping).sum();
        let barrier = |d: &usize| self.rates[*d].overhead.value().unwrap_or(0.0);
        let barrier = devices.iter().map(barrier).fold(0.0, f64::max);
        let together = barrier + self.units as f64 / (own? + helping);
        let clearly = others().all(beaten) && seconds <= (1.0 + MARGINAL) * together;
        clearly.then_some((devices, partition))
    }

    /// How many times as fast as probed a device may be beside these: a kernel on one of
    /// several devices of a kind, of which each was probed several times, tells more.
    fn rough(&self, device: usize, beside: &[usize]) -> f64 {
        let kind = self.devices[device].kind;
        let is_alike = |d: &usize| self.devices[*d].kind == kind;
        let spread = |d: usize| self.rates[d].held.uncertainty();
        let widest = beside.iter().map(|d| spread(*d)).fold(0.0, f64::max);
        match beside.iter().all(is_alike) && self.capacity(device) > 0 {
            true if spread(device) > 0.0 => 1.0 + DISTINCT * widest.hypot(spread(device)),
            _ => ROUGH,
        }
    }

    /// Whether devices that hold all units may be better without a pool: they copy to each other
    /// directly, or a pool wants many of their results in host memory.
    pub(super) fn may_hold_alone(&self) -> bool {
        self.direct.is_some() || self.published > MANY * self.units as f64
    }

    /// The devices that can hold all units, where they are several that may be better without a
    /// pool, and a step by them.
    fn holders_partition(&self) -> Option<(Vec<usize>, Partition)> {
        let holders: Vec<usize> = self.at_work().filter(|d| self.capacity(*d) > 0).collect();
        if !self.may_hold_alone() || holders.len() < 2 || !self.can_hold_all(&holders) {
            return None;
        }
        let known = holders
            .iter()
            .all(|d| self.rates[*d].held.value().is_some());
        let partition = self.division_among(known.then_some(&holders)?)?;
        let seconds = partition.seconds.max(self.enqueued(&partition));
        Some((
            holders,
            Partition {
                seconds,
                ..partition
            },
        ))
    }

    fn can_hold_all(&self, devices: &[usize]) -> bool {
        let capacity: u64 = devices.iter().map(|d| self.capacity(*d)).sum();
        capacity >= self.units
    }

    /// Whether the active devices, once `other` has joined or left, are several that hold all
    /// units and may be better without a pool.
    pub(super) fn all_hold(&self, other: Option<usize>) -> bool {
        let works = |d: &usize| self.active.works(*d) != (other == Some(*d));
        let working: Vec<usize> = (0..self.devices.len()).filter(works).collect();
        let holds = |d: &usize| self.capacity(*d) > 0;
        let all_hold = working.len() > 1 && working.iter().all(holds);
        self.may_hold_alone() && all_hold && self.can_hold_all(&working)
    }

    /// Whether the planned devices hold all units and need no barrier.
    pub(super) fn needs_no_barrier(&self) -> bool {
        let holders = self.plan.held.iter().filter(|held| **held > 0).count();
        let none_waits = holders == 1 || self.direct.is_some();
        none_waits && self.plan.held.iter().sum::<u64>() == self.units
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

    /// Seconds of enqueueing a step without a barrier: launches, and the copies of two edges
    /// between neighbours, which take about as long. In other steps, enqueueing overlaps or is
    /// part of the overhead.
    pub(super) fn enqueued(&self, partition: &Partition) -> f64 {
        let held = &partition.held;
        let holders: Vec<usize> = (0..held.len()).filter(|d| held[*d] > 0).collect();
        let of = |d: &usize| self.enqueue[*d].unwrap_or(0.0);
        match (holders.as_slice(), self.direct) {
            ([device], _) if held[*device] == self.units => of(device),
            ([_, neighbours @ ..], Some(_)) if held.iter().sum::<u64>() == self.units => {
                let launches: f64 = holders.iter().map(of).sum();
                launches + 2.0 * neighbours.iter().map(of).sum::<f64>()
            }
            _ => 0.0,
        }
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

    /// The number of devices with memory of their own to hold units in.
    pub(super) fn holders(&self) -> usize {
        let holds = |d: &usize| self.capacity(*d) > 0;
        (0..self.devices.len()).filter(holds).count()
    }
}

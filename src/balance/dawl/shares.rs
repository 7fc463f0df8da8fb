//! What to plan at a barrier: from what is known of the devices to who holds
//! and does what, and whether somebody should be left out (step 6).

use super::Dawl;
use super::partition::{self, Ability, Partition};
use super::{LEARNING, SETTLING};
use crate::balance::apportion::largest_remainder;

/// How many times what a move costs it must gain.
const PAYS: f64 = 1.25;
/// The same for small gains, which may be noise.
const PAYS_CLEARLY: f64 = 3.0;
/// The same after a change: to be near the best again is worth something.
const ANEW: f64 = 0.5;
/// Streaming must promise so much to be preferred: its cost is known less well.
const STREAMING_PAYS: f64 = 0.99;
/// The same while rates are from probes and first steps, which are rough: a
/// change of mind moves units there and back.
const ROUGHLY_PAYS: f64 = 0.9;
/// A device's rates beside streams and without any must differ by this part, or
/// the difference is taken for noise: few steps show both, and from such a
/// difference whoever streams would be judged for good.
const CONTENDED: f64 = 0.05;

impl Dawl {
    /// Steps 1 and 2: equal shares, held as far as memory reaches.
    pub(super) fn equal_shares(&self) -> Partition {
        let weights: Vec<f64> = (0..self.devices.len())
            .map(|d| f64::from(u8::from(self.active.works(d))))
            .collect();
        let counts = largest_remainder(self.units, &weights);
        let held: Vec<u64> = (self.devices.iter().zip(&counts))
            .map(|(device, count)| device.capacity.unwrap_or(0).min(*count))
            .collect();
        Partition {
            pooled: counts.iter().zip(&held).map(|(c, h)| c - h).collect(),
            held,
            seconds: 0.0,
        }
    }

    /// Step 6: the shares with which all finish together.
    pub(super) fn shares(&mut self, step: u32) -> Option<Partition> {
        if let Some(rates) = self.active.conclude(step) {
            self.rates = rates;
        }
        let target = self.together(None)?;
        let target = match self.reports == 0 && self.guide.is_none() {
            true => self.without_the_marginal(target),
            false => target,
        };
        let partition = self.unless_moving_costs_more(step, target);
        if self.guide.is_some() {
            return Some(partition);
        }
        if self.reports < 1 || self.active.trial.is_some() || self.is_doubtful() {
            return Some(partition);
        }
        if self.explore(step, &partition) {
            return self.together(None);
        }
        Some(partition)
    }

    /// The partition with which all that take part finish together; `other`'s
    /// part in the work is changed.
    pub(super) fn together(&self, other: Option<usize>) -> Option<Partition> {
        self.best(other, |abilities| {
            partition::finish_together(self.units, abilities)
        })
    }

    /// What `divide` makes of the devices' abilities where no device streams, and
    /// where all may; the part of `other` is changed.
    pub(super) fn either_way(
        &self,
        other: Option<usize>,
        divide: impl Fn(&[Ability]) -> Option<Partition>,
    ) -> [Option<Partition>; 2] {
        [false, true].map(|streams| {
            let partition = divide(&self.abilities(other, streams))?;
            let seconds = self.enqueued(&partition).max(partition.seconds);
            Some(Partition {
                seconds,
                ..partition
            })
        })
    }

    /// The better of both; where a guide or a trial decides whether devices stream,
    /// the one of that kind.
    pub(super) fn best(
        &self,
        other: Option<usize>,
        divide: impl Fn(&[Ability]) -> Option<Partition>,
    ) -> Option<Partition> {
        let (unstreamed, streaming) = match self.either_way(other, divide) {
            // Where no device streams, the rates beside streams do not hold.
            [Some(unstreamed), Some(all)] if self.is_quiet(&all.held, &all.pooled) => {
                return Some(unstreamed);
            }
            [Some(unstreamed), Some(streaming)] => (unstreamed, streaming),
            [one, other] => return one.or(other),
        };
        let least = match self.reports < LEARNING {
            true => ROUGHLY_PAYS,
            // What noise explains is no reason to change.
            false if self.reports > 0 && self.quiet.is_none() => STREAMING_PAYS + self.noise(true),
            false => STREAMING_PAYS.min(1.0 - self.noise(true)),
        };
        let decided = match (&self.guide, other) {
            (Some(guide), _) => Some(guide.streams),
            (None, None) => self.active.streams(self.planned + 1),
            (None, Some(_)) => None,
        };
        match decided.unwrap_or(streaming.seconds < least * unstreamed.seconds) {
            true => Some(streaming),
            false => Some(unstreamed),
        }
    }

    /// Whether nobody streams in a partition.
    pub(super) fn is_quiet(&self, held: &[u64], pooled: &[u64]) -> bool {
        let streams = |d: usize| self.devices[d].capacity.is_some() && pooled[d] > 0;
        !held.is_empty() && !(0..self.devices.len()).any(streams)
    }

    /// What the devices that take part can do when all may stream or nobody
    /// does; `other`'s part is changed.
    fn abilities(&self, other: Option<usize>, streaming: bool) -> Vec<Ability> {
        let lone = self.lone_holder(other);
        (0..self.devices.len())
            .map(|d| {
                if self.active.works(d) == (other == Some(d)) {
                    return Ability::default();
                }
                let capacity = self.devices[d].capacity;
                Ability {
                    capacity: capacity.unwrap_or(0),
                    held_rate: self.held_rate(d),
                    launch: self.rates[d].launch.seconds(),
                    slots: self.devices[d].slots,
                    pool_rate: match capacity.is_some() && !streaming {
                        true => 0.0,
                        false => self.pool_rate(d, streaming),
                    },
                    intrusion: self.intrusion(d),
                    overhead: match lone == Some(d) {
                        true => 0.0,
                        false => self.rates[d].overhead.value().unwrap_or(0.0),
                    },
                }
            })
            .collect()
    }

    /// Held units a second: measured, or else as another device of the kind,
    /// or else as fast as anything known.
    fn held_rate(&self, device: usize) -> f64 {
        let known = |d: usize| self.rates[d].held.value();
        known(device)
            .or_else(|| self.fastest(device, known))
            .or_else(|| self.fastest(device, |d| self.known_pool_rate(d, true)))
            .unwrap_or(1.0)
    }

    /// Seconds of kernels that each unit which a device streams costs beyond
    /// its own: the launch of its chunk, and what writes delay.
    fn intrusion(&self, device: usize) -> f64 {
        let rates = &self.rates[device];
        let planned = self
            .chunks
            .chunk(device)
            .max(self.devices[device].min_chunk);
        // Chunks turn out smaller than planned where others are nearly through.
        let chunk = rates.chunk_units.value().unwrap_or(planned as f64);
        let seconds = rates.chunk.value().unwrap_or(rates.launch.seconds());
        seconds / chunk.max(1.0)
    }

    /// Seconds of kernels that each unit which a device streams takes from those
    /// on held units; `None` where nothing is known of these.
    pub(super) fn streamed_kernel(&self, device: usize) -> Option<f64> {
        let rate = self.rates[device].held.value()?;
        Some(1.0 / rate + self.intrusion(device))
    }

    /// Pool units a second when all may stream or nobody does: measured, or
    /// else what the link allows, or else as another device of the kind.
    fn pool_rate(&self, device: usize, streaming: bool) -> f64 {
        let known = |d: usize| self.known_pool_rate(d, streaming);
        known(device)
            .or(self.devices[device].stream_limit)
            .or_else(|| self.fastest(device, known))
            .unwrap_or_else(|| 0.05 * self.rates[device].held.value().unwrap_or(1.0))
    }

    pub(super) fn known_pool_rate(&self, device: usize, streaming: bool) -> Option<f64> {
        let rates = &self.rates[device];
        match (rates.pool.value(), rates.alone.value()) {
            (Some(pool), Some(alone)) if (alone / pool - 1.0).abs() < CONTENDED => {
                Some(0.5 * (pool + alone))
            }
            (pool, alone) if streaming => pool.or(alone),
            (pool, alone) => alone.or(pool),
        }
    }

    /// By how much of it a device's rate on the pool differs from step to step.
    pub(super) fn jitter(&self, device: usize) -> f64 {
        let rates = &self.rates[device];
        match self.quiet.is_some() && rates.alone.observed().is_some() {
            true => rates.alone.jitter(),
            false => rates.pool.jitter(),
        }
    }

    /// The part of its rate on host memory that a device has while others
    /// stream, where known.
    pub(super) fn contended(&self, device: usize) -> Option<f64> {
        let alone = self.known_pool_rate(device, false)?;
        Some((self.known_pool_rate(device, true)? / alone).min(1.0))
    }

    /// The greatest known figure among the devices of the same kind, or else
    /// of any.
    fn fastest(&self, device: usize, known: impl Fn(usize) -> Option<f64>) -> Option<f64> {
        let kind = self.devices[device].kind;
        let all = 0..self.devices.len();
        let alike = all.clone().filter(|d| self.devices[*d].kind == kind);
        (alike.filter_map(&known).reduce(f64::max))
            .or_else(|| all.filter_map(&known).reduce(f64::max))
    }

    /// Units a second that change hands.
    pub(super) fn link(&self, device: usize) -> f64 {
        self.devices[device]
            .stream_limit
            .unwrap_or_else(|| self.pool_rate(device, true))
            .max(f64::MIN_POSITIVE)
    }

    /// Seconds that it takes to hold `held` instead of what is held now.
    pub fn moving(&self, held: &[u64]) -> f64 {
        match self.transfers_to(held) {
            0.0 => 0.0,
            transfers => transfers + self.move_delay.value().unwrap_or(0.0),
        }
    }

    /// Of these, the seconds of the transfers.
    pub(super) fn transfers_to(&self, held: &[u64]) -> f64 {
        (self.plan.held.iter().zip(held).enumerate())
            .map(|(d, (from, to))| from.abs_diff(*to) as f64 / self.link(d))
            .fold(0.0, f64::max)
    }

    /// Keeps what is held where it is, unless the steps that remain gain more
    /// than moving costs, and more than the timings' noise.
    fn unless_moving_costs_more(&self, step: u32, target: Partition) -> Partition {
        if self.plan.held.is_empty() {
            return target;
        }
        let must = (0..self.devices.len()).any(|d| self.plan.held[d] > 0 && !self.active.works(d));
        let stay = self.best(None, |abilities| {
            partition::around_held(self.units, &self.plan.held, abilities)
        });
        let Some(stay) = stay.filter(|_| !must) else {
            return target;
        };
        let gain = stay.seconds - target.seconds;
        let remaining = f64::from(self.steps.saturating_sub(step));
        let changed = self.changed.is_some_and(|c| step <= c + LEARNING);
        let learning = step <= LEARNING || changed;
        let cost = self.moving(&target.held);
        let pays = gain * remaining > PAYS * cost;
        let (least, pays): (f64, bool) = match (learning, self.guide.is_some()) {
            (true, false) => (0.01, true),
            // A plan that was given has little to learn, unless it was wrong.
            (true, true) => (0.02, pays || changed && gain * remaining > ANEW * cost),
            // Medians of several steps with one plan are as good as it gets.
            (false, _) if step > self.replanned + SETTLING => {
                (0.012, gain * remaining > PAYS_CLEARLY * cost)
            }
            (false, _) => (0.03, pays),
        };
        let streams = |partition: &Partition| !self.is_quiet(&partition.held, &partition.pooled);
        let noise = self.noise(streams(&stay) || streams(&target));
        if gain > least.max(noise) * target.seconds && pays {
            target
        } else {
            stay
        }
    }

    /// The part of a step's seconds that the rates' noise explains, when devices
    /// stream or none does: about the standard error of what is predicted.
    fn noise(&self, streaming: bool) -> f64 {
        let of = |d: usize| {
            let rates = &self.rates[d];
            let alone = rates.alone.observed().is_some();
            let pool = match (self.devices[d].capacity, streaming) {
                (None, false) if alone => rates.alone.uncertainty(),
                (Some(_), false) => 0.0,
                _ => rates.pool.uncertainty(),
            };
            rates.held.uncertainty().max(pool)
        };
        let at_work = (0..self.devices.len()).filter(|d| self.active.works(*d));
        at_work.map(of).map(|one| one * one).sum::<f64>().sqrt()
    }
}

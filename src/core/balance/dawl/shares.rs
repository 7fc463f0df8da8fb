//! Where shares are decided: from the estimates of the devices to the units that each
//! one holds and computes of the pool in the coming step (the paper's step 6).

use std::ops::Range;

use super::Dawl;
use super::part::Part;
use super::partition::{self, Ability, Partition};
use super::rates::{RateEstimates, Supposed};
use super::{LEARNING, SETTLING};
use crate::balance::apportion::largest_remainder;
use crate::balance::{Setup, StepPlan};

/// A move must gain so many times its cost.
const PAYS: f64 = 1.25;
/// The same for small gains, which may be noise.
const PAYS_CLEARLY: f64 = 3.0;
/// The same after a change, with a guide.
const ANEW: f64 = 0.5;
/// The part of the remaining steps' time that a first move may cost whatever it gains, as it shows
/// rates on which all later shares depend.
const SHOWN: f64 = 0.05;
/// A step with streams must take less than this part of one without, since its cost
/// is known less well.
const STREAMING_PAYS: f64 = 0.99;
/// The same while rates come from probes and first steps, which are rough: a second
/// thought moves units there and back.
const ROUGHLY_PAYS: f64 = 0.9;
/// Probed rates that differ by fewer standard errors may be equal: those of equal devices
/// do in 19 of 20 cases.
pub(super) const DISTINCT: f64 = 2.0;
/// Rates with and without streams that differ by less than this part are averaged:
/// few steps show both, so the difference is taken for noise.
const CONTENDED: f64 = 0.05;

impl Dawl {
    /// Equal shares, held as far as memory allows (steps 1 and 2).
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

    /// The shares of the coming step.
    pub(super) fn shares(&mut self, step: u32) -> Option<Partition> {
        if let Some(rates) = self.active.conclude(step) {
            self.rates = rates;
        }
        if std::mem::take(&mut self.is_open) && self.guide.is_none() {
            self.choose_part(step);
        }
        let both = self.either_way(&self.at_work(), &|_| 1.0, |abilities| {
            partition::finish_together(self.units, abilities)
        });
        let either = self.seconds_either_way(&both);
        either.inspect(|either| self.active.reconsider(*either));
        let target = self.better(true, both)?;
        let partition = self.unless_moving_costs_more(step, target);
        if self.guide.is_some() {
            return Some(partition);
        }
        if self.reports < 1 || self.active.trial.is_some() || self.is_doubtful() {
            return Some(partition);
        }
        if self.explore(step, &partition, either) {
            return self.together(&self.at_work());
        }
        Some(partition)
    }

    /// The partition with which all devices of a part finish together.
    pub(super) fn together(&self, part: &Part) -> Option<Partition> {
        self.at_rates(part, &|_| 1.0)
    }

    /// The same if devices were so many times faster than estimated.
    pub(super) fn at_rates(&self, part: &Part, faster: &dyn Fn(usize) -> f64) -> Option<Partition> {
        let both = self.either_way(part, faster, |abilities| {
            partition::finish_together(self.units, abilities)
        });
        self.better(*part == self.at_work(), both)
    }

    /// What `divide` makes of the abilities of a part where no device streams, and where all
    /// may.
    fn either_way(
        &self,
        part: &Part,
        faster: &dyn Fn(usize) -> f64,
        divide: impl Fn(&[Ability]) -> Option<Partition>,
    ) -> [Option<Partition>; 2] {
        [false, true].map(|streams| {
            let partition = divide(&self.abilities(part, faster, streams))?;
            let seconds = self.enqueued(&partition).max(partition.seconds);
            Some(Partition {
                seconds,
                ..partition
            })
        })
    }

    /// The seconds of a step without streams and of one with them, if they differ.
    fn seconds_either_way(&self, both: &[Option<Partition>; 2]) -> Option<[f64; 2]> {
        let [Some(unstreamed), Some(streaming)] = both else {
            return None;
        };
        (!self.is_unstreamed(&streaming.held, &streaming.pooled))
            .then_some([unstreamed.seconds, streaming.seconds])
    }

    /// The better of both; where a guide decides whether devices stream, or a trial of those
    /// that work `now`, the one of that kind.
    fn better(&self, now: bool, both: [Option<Partition>; 2]) -> Option<Partition> {
        let (unstreamed, streaming) = match both {
            // Where no device streams, the rates beside streams do not hold.
            [Some(unstreamed), Some(all)] if self.is_unstreamed(&all.held, &all.pooled) => {
                return Some(unstreamed);
            }
            [Some(unstreamed), Some(streaming)] => (unstreamed, streaming),
            [one, other] => return one.or(other),
        };
        let least = match self.reports < LEARNING {
            true => ROUGHLY_PAYS,
            // What noise explains is no reason to change.
            false if self.reports > 0 && self.unstreamed.is_none() => {
                STREAMING_PAYS + self.noise(true)
            }
            false => STREAMING_PAYS.min(1.0 - self.noise(true)),
        };
        let decided = match (&self.guide, now) {
            (Some(guide), _) => Some(guide.streams),
            (None, true) => self.active.streams(self.planned + 1),
            (None, false) => None,
        };
        match decided.unwrap_or(streaming.seconds < least * unstreamed.seconds) {
            true => Some(streaming),
            false => Some(unstreamed),
        }
    }

    /// Whether no device streams in a partition.
    pub(super) fn is_unstreamed(&self, held: &[u64], pooled: &[u64]) -> bool {
        let streams = |d: usize| self.devices[d].capacity.is_some() && pooled[d] > 0;
        !held.is_empty() && !(0..self.devices.len()).any(streams)
    }

    /// The abilities of a part where all may stream, or none does, if devices were `faster` than
    /// estimated.
    fn abilities(
        &self,
        part: &Part,
        faster: &dyn Fn(usize) -> f64,
        streaming: bool,
    ) -> Vec<Ability> {
        let holding = !streaming && self.all_hold(part);
        let ability = |d: usize| {
            let capacity = self.devices[d].capacity;
            let faster = faster(d);
            Ability {
                capacity: capacity.unwrap_or(0),
                held_rate: self.held_rate(d) * faster,
                launch: self.rates[d].launch.seconds(),
                slots: self.devices[d].slots,
                pool_rate: match capacity.is_some() && !streaming {
                    true => 0.0,
                    false => self.pool_rate(d, streaming) * faster,
                },
                intrusion: self.intrusion(d),
                overhead: match self.lone_holder(part) {
                    Some(_) => 0.0,
                    None => self.overhead_in(part, d, holding),
                },
            }
        };
        let working = part.iter().enumerate();
        let abilities = working.map(|(d, works)| works.then(|| ability(d)));
        abilities.map(Option::unwrap_or_default).collect()
    }

    /// Held units a second: measured, or else of the fastest device of the kind, or
    /// else the fastest rate known.
    pub(super) fn held_rate(&self, device: usize) -> f64 {
        let known = |d: usize| self.rates[d].held.value();
        self.rate_alike(device)
            .or_else(|| self.fastest(device, known))
            .or_else(|| self.fastest(device, |d| self.known_pool_rate(d, true)))
            .unwrap_or(1.0)
    }

    /// Measured held units a second. Before the first step these are probes, which tell
    /// devices of a kind apart only where the rates differ by more than their spread; else
    /// all have the mean rate.
    fn rate_alike(&self, device: usize) -> Option<f64> {
        let own = self.rates[device].held.value()?;
        let is_of_kind = |d: &usize| {
            let (one, other) = (&self.devices[device], &self.devices[*d]);
            one.kind == other.kind && one.compute_units == other.compute_units
        };
        let spread = |d: usize| self.rates[d].held.uncertainty();
        let is_alike = |d: usize, rate: f64| {
            let difference = (rate / own - 1.0).abs();
            difference <= DISTINCT * spread(d).hypot(spread(device))
        };
        let alike = (0..self.devices.len())
            .filter(|d| self.reports == 0 && is_of_kind(d))
            .filter_map(|d| Some((d, self.rates[d].held.value()?)))
            .filter(|(d, rate)| is_alike(*d, *rate));
        let (count, sum) = alike.fold((0, 0.0), |(count, sum), (_, rate)| (count + 1, sum + rate));
        Some(if count > 0 {
            sum / f64::from(count)
        } else {
            own
        })
    }

    /// Seconds of the kernels' time that a streamed unit takes beyond its own: its part
    /// of its chunk's launch, and of launches that writes delay.
    fn intrusion(&self, device: usize) -> f64 {
        let rates = &self.rates[device];
        let planned = self
            .chunks
            .chunk(device)
            .max(self.devices[device].min_chunk);
        // Chunks are shorter than planned near the end of a step.
        let chunk = rates.chunk_units.value().unwrap_or(planned as f64);
        let seconds = rates.chunk.value().unwrap_or(rates.launch.seconds());
        seconds / chunk.max(1.0)
    }

    /// Seconds of the kernels' time that a streamed unit takes; `None` where the rate
    /// on held units is unknown.
    pub(super) fn streamed_kernel(&self, device: usize) -> Option<f64> {
        let rate = self.rates[device].held.value()?;
        Some(1.0 / rate + self.intrusion(device))
    }

    /// Pool units a second where all may stream, or none does: measured, or else the
    /// link's limit, or else of the fastest device of the kind.
    pub(super) fn pool_rate(&self, device: usize, streaming: bool) -> f64 {
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

    /// The jitter of a device's rate on the pool.
    pub(super) fn jitter(&self, device: usize) -> f64 {
        let rates = &self.rates[device];
        match self.unstreamed.is_some() && rates.alone.observed().is_some() {
            true => rates.alone.jitter(),
            false => rates.pool.jitter(),
        }
    }

    /// The part of a device's rate on host memory that is left while others stream,
    /// where known.
    pub(super) fn contended(&self, device: usize) -> Option<f64> {
        let alone = self.known_pool_rate(device, false)?;
        Some((self.known_pool_rate(device, true)? / alone).min(1.0))
    }

    /// The greatest known value among the devices of the same kind, or else of any.
    fn fastest(&self, device: usize, known: impl Fn(usize) -> Option<f64>) -> Option<f64> {
        let kind = self.devices[device].kind;
        let all = 0..self.devices.len();
        let alike = all.clone().filter(|d| self.devices[*d].kind == kind);
        (alike.filter_map(&known).reduce(f64::max))
            .or_else(|| all.filter_map(&known).reduce(f64::max))
    }

    /// Keeps the held units where they are, unless a step gains more than the noise
    /// and the remaining steps gain more than the move costs.
    fn unless_moving_costs_more(&self, step: u32, target: Partition) -> Partition {
        if self.plan.held.is_empty() {
            return target;
        }
        let must = (0..self.devices.len()).any(|d| self.plan.held[d] > 0 && !self.active.works(d));
        let mut stay = self.either_way(&self.at_work(), &|_| 1.0, |abilities| {
            partition::around_held(self.units, &self.plan.held, abilities)
        });
        // Streams in every step replace no move of units that can be held.
        if self.is_unstreamed(&target.held, &target.pooled) && self.unstreamed.is_some() {
            stay[1] = None;
        }
        let Some(stay) = self.better(true, stay).filter(|_| !must) else {
            return target;
        };
        let streams =
            |partition: &Partition| !self.is_unstreamed(&partition.held, &partition.pooled);
        let noise = self.noise(streams(&stay) || streams(&target));
        // Of several differences the largest looks best, and is most likely noise.
        let gain = stay.seconds - (1.0 + noise) * target.seconds;
        let remaining = f64::from(self.steps.saturating_sub(step));
        let changed = self.changed.is_some_and(|c| step <= c + LEARNING);
        let learning = step <= LEARNING || changed;
        let cost = self.moving(&target.held);
        let pays = gain * remaining > PAYS * cost;
        let (least, pays): (f64, bool) = match (learning, self.guide.is_some()) {
            (true, false) => {
                let rest = remaining * target.seconds;
                (0.01, gain * remaining > cost || cost < SHOWN * rest)
            }
            // A guide's plan has little to learn, unless it was wrong.
            (true, true) => (0.02, pays || changed && gain * remaining > ANEW * cost),
            // Estimates are best after several steps with one plan.
            (false, _) if step > self.replanned + SETTLING => {
                (0.012, gain * remaining > PAYS_CLEARLY * cost)
            }
            (false, _) => (0.03, pays),
        };
        if gain > least * target.seconds && pays {
            target
        } else {
            stay
        }
    }

    /// The relative standard error of a predicted step, by the noise of the rates,
    /// where devices stream or none does.
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

// What moves of units cost. The pool comes first in the order of units, then what each
// device holds, in the devices' order, so that a change of one device's share moves the
// ranges of others, too.

impl Dawl {
    /// Seconds of moving from the present held units to `held`.
    pub fn moving(&self, held: &[u64]) -> f64 {
        match self.transfers_to(held) {
            0.0 => 0.0,
            transfers => transfers + self.move_delay.value().unwrap_or(0.0),
        }
    }

    /// The part of these for the transfers.
    pub(super) fn transfers_to(&self, held: &[u64]) -> f64 {
        let each = self.transfers(&self.plan.held, held);
        let longest = each.iter().copied().fold(0.0, f64::max);
        // Through host memory, all share its bus.
        let by_link = each
            .iter()
            .enumerate()
            .map(|(d, seconds)| seconds * self.link(d));
        match (self.bus, self.direct.filter(|_| self.moves_directly)) {
            (Some(bus), None) => longest.max(by_link.sum::<f64>() / bus),
            _ => longest,
        }
    }

    /// Seconds of each device's transfers where it held units `before` and is to hold `after`.
    /// Units go from holder to holder directly where they can, else through host memory.
    pub(super) fn transfers(&self, before: &[u64], after: &[u64]) -> Vec<f64> {
        let devices = 0..self.devices.len();
        if before.is_empty() || before == after {
            return vec![0.0; devices.len()];
        }
        let (old, new) = (self.ranges(before), self.ranges(after));
        let gets = |d: usize| length(&new[d]) - length(&common(&new[d], &old[d]));
        let gives = |d: usize| length(&old[d]) - length(&common(&new[d], &old[d]));
        let between = |from: usize, to: usize| match from == to {
            true => 0,
            false => length(&common(&old[from], &new[to])),
        };
        let seconds = |d: usize| {
            let others = || devices.clone();
            let direct = self.direct.filter(|_| self.moves_directly);
            let (sent, received): (u64, u64) = match direct {
                Some(_) => (
                    others().map(|to| between(d, to)).sum(),
                    others().map(|from| between(from, d)).sum(),
                ),
                None => (0, 0),
            };
            let by_link = (gets(d) - received).max(gives(d) - sent);
            let directly = sent.max(received);
            by_link as f64 / self.link(d) + direct.map_or(0.0, |rate| directly as f64 / rate)
        };
        devices.clone().map(seconds).collect()
    }

    /// The units that each device holds.
    fn ranges(&self, held: &[u64]) -> Vec<Range<u64>> {
        let mut at = self.units - held.iter().sum::<u64>();
        let range = |count: &u64| {
            let start = at;
            at += count;
            start..at
        };
        held.iter().map(range).collect()
    }

    /// Units a second between host memory and a device's.
    pub(super) fn link(&self, device: usize) -> f64 {
        self.devices[device]
            .stream_limit
            .unwrap_or_else(|| self.pool_rate(device, true))
            .max(f64::MIN_POSITIVE)
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

fn common(one: &Range<u64>, other: &Range<u64>) -> Range<u64> {
    one.start.max(other.start)..one.end.min(other.end)
}

// The guide: a plan given by a cost model or an earlier run. DAWL follows the plan in the next step
// and then keeps its structure, which is the active set and whether a device
// streams. Nothing is tried. Shares follow the measurements.

/// A given plan.
#[derive(Clone, Debug)]
pub(super) struct Guide {
    /// The plan itself, until it has been followed.
    pub given: Option<Partition>,
    /// Whether a device streams in it.
    pub streams: bool,
    /// It holds until a device changes.
    pub until_change: bool,
}

impl Dawl {
    /// A balancer without probes, for given estimates of each device.
    pub fn knowing(setup: &Setup, supposed: &[Supposed]) -> Self {
        let mut dawl = Self::new(setup).from_equal_shares();
        for (device, supposed) in supposed.iter().enumerate() {
            dawl.suppose(device, supposed);
        }
        dawl
    }

    /// Supposes these estimates of a device until it is measured.
    pub fn suppose(&mut self, device: usize, supposed: &Supposed) {
        if let Some(rates) = self.rates.get_mut(device) {
            rates.suppose(supposed);
        }
        // On host memory, a step's overhead is that of a single chunk.
        if self
            .devices
            .get(device)
            .is_some_and(|d| d.capacity.is_none())
        {
            self.granularity[device].suppose(supposed.overhead);
        }
    }

    /// Follows a plan in the next step and keeps its structure from then on.
    pub fn follow(&mut self, given: Partition) {
        let has_work = |d: usize| given.held[d] + given.pooled[d] > 0;
        self.active.appoint(has_work);
        self.rates
            .iter_mut()
            .for_each(RateEstimates::forget_overhead);
        self.guide = Some(Guide {
            streams: !self.is_unstreamed(&given.held, &given.pooled),
            given: Some(given),
            until_change: false,
        });
    }

    /// Whether the present plan has the structure of the given one.
    pub fn keeps_to(&self, given: &Partition) -> bool {
        let has_work = |d: usize| given.held[d] + given.pooled[d] > 0;
        let streams = !self.is_unstreamed(&given.held, &given.pooled);
        (self.guide.as_ref()).is_some_and(|guide| guide.streams == streams)
            && (0..self.devices.len()).all(|d| self.active.works(d) == has_work(d))
    }

    /// The plan of the last step.
    pub fn present(&self) -> &StepPlan {
        &self.plan
    }

    /// Measured seconds from a step's begin until a device's work starts.
    pub fn start(&self, device: usize) -> Option<f64> {
        self.rates.get(device)?.start.value()
    }

    /// The supposed and measured estimates have turned out to be wrong in the step
    /// before `step`.
    pub fn relearn(&mut self, step: u32) {
        self.changed = Some(step);
    }

    /// Decides without a guide from `step` on, beginning with all devices active.
    pub fn let_go(&mut self, step: u32) {
        self.guide = None;
        self.active.start_over(step);
        self.changed = Some(step);
    }
}

#[cfg(test)]
mod tests {
    use crate::balance::fixtures::{cpu, gpu, setup};
    use crate::balance::{Dawl, Setup};

    /// The seconds of each device's transfers. Links carry a unit a second, direct ways ten.
    fn transfers(direct: bool, before: [u64; 3], after: [u64; 3]) -> Vec<f64> {
        let devices = vec![cpu(), gpu(100, 1e-6), gpu(100, 1e-6)];
        let setup = Setup {
            direct: direct.then_some(10.0),
            ..setup(100, devices)
        };
        Dawl::new(&setup).transfers(&before, &after)
    }

    #[test]
    fn holders_move_units_directly_where_they_can() {
        let (before, after) = ([0, 40, 60], [0, 50, 50]);
        assert_eq!(transfers(true, before, after), [0.0, 1.0, 1.0]);
        assert_eq!(transfers(false, before, after), [0.0, 10.0, 10.0]);
        assert_eq!(transfers(true, before, before), [0.0; 3]);
    }

    #[test]
    fn the_pool_takes_units_of_the_first_holder_which_gets_those_of_the_next() {
        let (before, after) = ([0, 50, 50], [0, 50, 40]);
        assert_eq!(transfers(true, before, after), [0.0, 11.0, 1.0]);
        assert_eq!(transfers(false, before, after), [0.0, 10.0, 10.0]);
        assert_eq!(transfers(true, after, before), [0.0, 11.0, 1.0]);
    }
}

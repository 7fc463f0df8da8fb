//! Adaptive: shares that are learned from layers place the components of the next
//! layer, or of the next run.
//!
//! The components of one level are a layer. The first layer is divided by estimates,
//! such that every useful device is measured. Each later one is divided such that all
//! devices are expected to end together, by their times of the layers before, as DAWL
//! divides steps. Components are few and whole, so the search is for the numbers of
//! them with the earliest expected end, and a device may have none.
//!
//! Devices slow each other down through the host's cores and memory, so the time of
//! the busiest device alone does not follow from its time beside others. If it may be
//! near the best, all components run on it once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pdawl_profiler::median;

use super::ready_queue::ReadyQueue;
use super::{Finished, Policy, Problem};
use crate::time::Nanos;

/// The part of a layer's time from which on copies count. Data that stay on the device
/// slow only the first run.
const COPY_FRACTION: f64 = 0.1;

/// The policy.
pub struct Adaptive {
    problem: Problem,
    levels: Vec<Vec<usize>>,
    /// Components without a device, and by device those that it gets.
    unplaced: ReadyQueue,
    ready: Vec<ReadyQueue>,
    learned: Vec<LearnedTimes>,
    /// By device: the seconds of its part of the last layer, over those estimated.
    off: Vec<Option<f64>>,
    lost: Vec<bool>,
    /// By component: its device, once its layer has been divided in this run.
    placed: Vec<Option<usize>>,
    /// By component: its expected device, once the level before was divided. Data that
    /// only this device needs stay there; if the component goes elsewhere, the engine
    /// fetches them.
    expected: Vec<Option<usize>>,
    /// By level.
    layers: Vec<LayerProgress>,
    /// By number of components: how many each device had of the last such layer.
    last: BTreeMap<usize, Vec<usize>>,
    /// Numbers of components for which the busiest device alone was considered.
    alone: BTreeSet<usize>,
}

/// A layer in progress.
#[derive(Clone, Debug)]
struct LayerProgress {
    left: usize,
    began: Nanos,
    /// By device.
    done: Vec<DevicePart>,
    /// Whether a device was lost meanwhile, so that the times cannot be used.
    unusable: bool,
}

/// A device's part of a layer.
#[derive(Clone, Copy, Debug, Default)]
struct DevicePart {
    /// The work of its components that have ended, their estimated seconds, and the last end.
    amount: f64,
    estimate: f64,
    ended: Nanos,
    /// Bytes that were written to it meanwhile.
    written: u64,
}

impl Adaptive {
    pub fn new(problem: Problem) -> Self {
        let devices = problem.devices.len();
        let mut made = Self {
            levels: problem.levels(),
            placed: vec![None; problem.tasks.len()],
            expected: vec![None; problem.tasks.len()],
            problem,
            unplaced: ReadyQueue::default(),
            ready: vec![ReadyQueue::default(); devices],
            learned: vec![LearnedTimes::default(); devices],
            off: vec![None; devices],
            lost: vec![false; devices],
            layers: Vec::new(),
            last: BTreeMap::new(),
            alone: BTreeSet::new(),
        };
        made.begin();
        made
    }

    /// How many components each device had of the last layer with so many.
    pub fn division(&self, components: usize) -> Option<&[usize]> {
        self.last.get(&components).map(Vec::as_slice)
    }

    fn clear_ready(&mut self) {
        self.unplaced.clear();
        self.ready.iter_mut().for_each(ReadyQueue::clear);
    }

    /// Other devices are there than before: earlier divisions say nothing of later ones,
    /// and the present layer's times tell nothing.
    fn divide_anew(&mut self) {
        self.clear_ready();
        self.last.clear();
        self.alone.clear();
        self.expected.fill(None);
        for layer in &mut self.layers {
            layer.unusable = true;
        }
    }

    /// Divides a layer: each component gets a device. The next layer is divided
    /// tentatively, which decides what data stay on their devices.
    fn divide(&mut self, level: usize) {
        let mut parts = self.parts(level, true);
        let count = self.levels[level].len();
        if !self.alone.contains(&count) && self.knows_all(&parts) {
            self.alone.insert(count);
            parts = self.single_device_instead(level, &parts).unwrap_or(parts);
        }
        for (device, part) in parts.iter().enumerate() {
            for component in part {
                self.placed[*component] = Some(device);
            }
        }
        let division: Vec<usize> = parts.iter().map(Vec::len).collect();
        self.last.insert(count, division);
        if level + 1 < self.levels.len() {
            for (device, part) in self.parts(level + 1, false).iter().enumerate() {
                for component in part {
                    self.expected[*component] = Some(device);
                }
            }
        }
    }
}

impl Policy for Adaptive {
    fn name(&self) -> &'static str {
        "adaptive"
    }

    fn may_run(&self, component: usize, device: usize) -> bool {
        self.problem.suits(component, device)
    }

    fn certain(&self, component: usize) -> Option<usize> {
        let device = self.placed[component].or(self.expected[component]);
        device.filter(|device| !self.lost[*device])
    }

    fn begin(&mut self) {
        self.clear_ready();
        self.placed.fill(None);
        self.expected.fill(None);
        let devices = self.lost.len();
        let layer = |components: &Vec<usize>| LayerProgress {
            left: components.len(),
            began: Nanos::MAX,
            done: vec![DevicePart::default(); devices],
            unusable: false,
        };
        self.layers = self.levels.iter().map(layer).collect();
    }

    fn ready(&mut self, component: usize, now: Nanos) {
        let level = self.problem.tasks[component].level;
        let layer = &mut self.layers[level];
        layer.began = layer.began.min(now);
        let queue = match self.placed[component] {
            Some(device) => &mut self.ready[device],
            None => &mut self.unplaced,
        };
        queue.push(&self.problem, component);
    }

    fn next(&mut self, device: usize, _now: Nanos) -> Option<usize> {
        if let Some(component) = self.unplaced.peek() {
            self.divide(self.problem.tasks[component].level);
        }
        while let Some(component) = self.unplaced.pop_if(|c| self.placed[c].is_some()) {
            if let Some(device) = self.placed[component] {
                self.ready[device].push(&self.problem, component);
            }
        }
        self.ready[device].pop()
    }

    fn finished(&mut self, finished: &Finished) {
        let task = &self.problem.tasks[finished.component];
        let layer = &mut self.layers[task.level];
        let done = &mut layer.done[finished.device];
        done.amount += task.weight;
        done.estimate += task.seconds[finished.device].unwrap_or(0.0);
        done.ended = done.ended.max(finished.ended);
        done.written += finished.written;
        layer.left = layer.left.saturating_sub(1);
        if layer.left > 0 || layer.unusable {
            return;
        }
        for (device, done) in layer.done.iter().enumerate() {
            let seconds = done.ended.saturating_sub(layer.began) as f64 / 1e9;
            if done.estimate > 0.0 {
                self.off[device] = Some(seconds / done.estimate);
            }
            let copying = self.problem.devices[device].transfer(done.written);
            self.learned[device].learn(done.amount, seconds, copying > seconds * COPY_FRACTION);
        }
    }

    fn changed(&mut self, device: usize, lost: bool) {
        self.lost[device] = lost;
        self.divide_anew();
        for placed in &mut self.placed {
            if *placed == Some(device) {
                *placed = None;
            }
        }
    }
}

#[cfg(test)]
mod tests;

/// Measurements that are kept of one amount. Older ones are dropped, so that a machine
/// may change.
const WINDOW: usize = 5;

/// Measurements with copies that are ignored in a row where there are some without.
/// More of them mean that copies are the rule now.
const MOST_IGNORED: u32 = 3;

/// A device's seconds by amount of work. The median of each amount counts, so that an
/// outlier has no effect.
///
/// A first run takes longer, since it writes data that stay on the device. So
/// measurements with and without copies are not mixed: those without replace the
/// others, for amounts up to twice as large or small.
#[derive(Clone, Debug, Default)]
struct LearnedTimes {
    /// Ascending by amount.
    seen: Vec<Measurements>,
    /// The amounts with the medians of their seconds. The division of a layer needs
    /// them hundreds of times, while the devices wait.
    points: Vec<(f64, f64)>,
    /// Measurements in a row that were ignored.
    ignored: u32,
}

/// The last measurements of an amount.
#[derive(Clone, Debug)]
struct Measurements {
    amount: f64,
    last: VecDeque<f64>,
    /// Whether data were copied meanwhile.
    with_copies: bool,
}

impl LearnedTimes {
    /// Learns that `amount` took `seconds`. `with_copies`: for a good part of that time,
    /// data were written that the device may have next time.
    pub fn learn(&mut self, amount: f64, seconds: f64, with_copies: bool) {
        if !(amount > 0.0 && seconds >= 0.0 && amount.is_finite() && seconds.is_finite()) {
            return;
        }
        let alike =
            |seen: &Measurements| seen.amount <= amount * 2.0 && amount <= seen.amount * 2.0;
        let others = |seen: &Measurements| alike(seen) && seen.with_copies != with_copies;
        if with_copies && self.seen.iter().any(others) {
            self.ignored += 1;
            if self.ignored <= MOST_IGNORED {
                return;
            }
        }
        self.ignored = 0;
        self.seen.retain(|seen| !others(seen));
        let at = self
            .seen
            .partition_point(|seen| seen.amount < amount * (1.0 - 1e-9));
        let same = self
            .seen
            .get(at)
            .is_some_and(|seen| seen.amount <= amount * (1.0 + 1e-9));
        if !same {
            let last = VecDeque::new();
            let seen = Measurements {
                amount,
                last,
                with_copies,
            };
            self.seen.insert(at, seen);
        }
        let last = &mut self.seen[at].last;
        last.push_back(seconds);
        if last.len() > WINDOW {
            last.pop_front();
        }
        let seen = self.seen.iter();
        self.points = seen
            .map(|seen| (seen.amount, median(&seen.last).unwrap_or(0.0)))
            .collect();
    }

    /// Whether anything has been learned.
    pub fn knows(&self) -> bool {
        !self.seen.is_empty()
    }

    /// Whether this amount was measured.
    pub fn measured(&self, amount: f64) -> bool {
        let near = |a: &f64| (a - amount).abs() <= 1e-9 * amount;
        self.seen.iter().any(|seen| near(&seen.amount))
    }

    /// The expected seconds of an amount; `None` if nothing is known.
    ///
    /// Between two measured amounts time is linear. Beyond the largest it continues the
    /// line through the two largest, but not above proportion to the largest, since a
    /// device with more work is not less efficient. With one amount known it is in
    /// proportion.
    pub fn expect(&self, amount: f64) -> Option<f64> {
        if amount <= 0.0 {
            return Some(0.0);
        }
        let points = &self.points;
        let (first, last) = (points.first()?, points.last()?);
        let above = points.partition_point(|(a, _)| *a < amount);
        let line = |one: (f64, f64), other: (f64, f64)| {
            let slope = (other.1 - one.1) / (other.0 - one.0);
            one.1 + slope.max(0.0) * (amount - one.0)
        };
        let known = points.len();
        // More work may have taken less time, with other disturbances.
        let near = |(at, _): &&(f64, f64)| (at - amount).abs() <= 1e-9 * amount;
        if let Some((_, seconds)) = points.iter().find(near) {
            return Some(*seconds);
        }
        Some(if known == 1 {
            first.1 * amount / first.0
        } else if above == 0 {
            line(points[0], points[1]).clamp((first.1 * amount / first.0).min(first.1), first.1)
        } else if above == known {
            line(points[known - 2], points[known - 1]).clamp(last.1, last.1 * amount / last.0)
        } else {
            line(points[above - 1], points[above])
        })
    }
}

/// How much better another division must be to replace the last one; layers vary by
/// less without a cause.
const LEAST_GAIN: f64 = 0.02;

/// Most moves that improve a division, which is near the best from the begin.
const MOST_MOVES: usize = 64;

/// A device without measurements gets a component to be measured, unless its estimate
/// is so many times the time of the whole layer.
const MOST_SLOWDOWN: f64 = 8.0;

/// The busiest device is tried alone if it is expected to take at most so many times
/// the time of the division.
const ALONE_LIMIT: f64 = 1.25;

impl Adaptive {
    /// Whether every device with components was measured.
    fn knows_all(&self, parts: &[Vec<usize>]) -> bool {
        let mut parts = parts.iter().enumerate();
        parts.all(|(device, part)| part.is_empty() || self.learned[device].knows())
    }

    /// All components on the device with the most, if others have some and that may be
    /// as good.
    fn single_device_instead(&self, level: usize, parts: &[Vec<usize>]) -> Option<Vec<Vec<usize>>> {
        let busiest = (0..parts.len()).max_by_key(|device| parts[*device].len())?;
        let all = &self.levels[level];
        if parts[busiest].len() == all.len() || !all.iter().all(|c| self.may(*c, busiest)) {
            return None;
        }
        let mut alone = vec![Vec::new(); parts.len()];
        alone[busiest].clone_from(all);
        (self.end(&alone) <= self.end(parts) * ALONE_LIMIT).then_some(alone)
    }

    /// By device: the components of a level that it is to have. With `explore`, devices
    /// without measurements get some.
    fn parts(&self, level: usize, explore: bool) -> Vec<Vec<usize>> {
        let mut free: Vec<usize> = self.levels[level].clone();
        // The heaviest first, since they are the hardest to place.
        free.sort_by(|a, b| {
            let weight = |c: &usize| self.problem.tasks[*c].weight;
            weight(b).total_cmp(&weight(a)).then(a.cmp(b))
        });
        let devices = self.lost.len();
        let mut parts: Vec<Vec<usize>> = vec![Vec::new(); devices];
        let mut work = vec![(0.0, 0.0); devices];
        for component in &free {
            let best = (0..devices)
                .filter(|d| self.may(*component, *d))
                .map(|d| {
                    let more = self.work(d, &[*component]);
                    let with = (work[d].0 + more.0, work[d].1 + more.1);
                    (d, with, self.expect(d, with))
                })
                .min_by(|one, other| one.2.total_cmp(&other.2));
            if let Some((device, with, _)) = best {
                work[device] = with;
                parts[device].push(*component);
            }
        }
        self.improve(&mut parts);
        if explore {
            self.explore_unmeasured(&mut parts);
        }
        self.keep(&free, &parts).unwrap_or(parts)
    }

    fn may(&self, component: usize, device: usize) -> bool {
        !self.lost[device] && self.problem.suits(component, device)
    }

    /// The expected end of the last device.
    fn end(&self, parts: &[Vec<usize>]) -> f64 {
        let ends = parts.iter().enumerate();
        let ends = ends.map(|(device, part)| self.expect(device, self.work(device, part)));
        ends.fold(0.0, f64::max)
    }

    /// Moves components between devices as long as the end becomes earlier. Because of
    /// the fixed part of its time, a device with little to do is often better without
    /// any.
    fn improve(&self, parts: &mut [Vec<usize>]) {
        for _ in 0..MOST_MOVES {
            let before = self.end(parts);
            let mut best: Option<(f64, Vec<Vec<usize>>)> = None;
            for (from, to) in pairs(parts.len()) {
                for count in amounts(parts[from].len()) {
                    let mut tried = parts.to_vec();
                    let moved = tried[from].split_off(parts[from].len() - count);
                    if !moved.iter().all(|c| self.may(*c, to)) {
                        break;
                    }
                    tried[to].extend(moved);
                    let end = self.end(&tried);
                    if end < before && best.as_ref().is_none_or(|(least, _)| end < *least) {
                        best = Some((end, tried));
                    }
                }
            }
            let Some((_, better)) = best else {
                return;
            };
            parts.clone_from_slice(&better);
        }
    }

    /// Gives a component to each device without measurements, as long as others keep
    /// one.
    fn explore_unmeasured(&self, parts: &mut [Vec<usize>]) {
        for device in 0..parts.len() {
            if self.learned[device].knows() || !parts[device].is_empty() {
                continue;
            }
            let fullest = (0..parts.len())
                .filter(|d| parts[*d].len() > 1)
                .max_by_key(|d| (parts[*d].len(), std::cmp::Reverse(*d)));
            let Some(from) = fullest else { continue };
            let bound = MOST_SLOWDOWN * self.end(parts);
            let suitable = parts[from].iter().rposition(|c| {
                self.may(*c, device) && self.expect(device, self.work(device, &[*c])) <= bound
            });
            if let Some(at) = suitable {
                let component = parts[from].remove(at);
                parts[device].push(component);
            }
        }
    }

    /// The last division again, if it fits this layer, was measured, and the new one is
    /// not clearly better.
    fn keep(&self, components: &[usize], new: &[Vec<usize>]) -> Option<Vec<Vec<usize>>> {
        let last = self.last.get(&components.len())?;
        if last.iter().sum::<usize>() != components.len() {
            return None;
        }
        let mut rest = components;
        let mut old = Vec::with_capacity(last.len());
        for count in last {
            let (part, others) = rest.split_at(*count);
            old.push(part.to_vec());
            rest = others;
        }
        let fits = old.iter().enumerate().all(|(device, part)| {
            let amount: f64 = part.iter().map(|c| self.problem.tasks[*c].weight).sum();
            part.iter().all(|c| self.may(*c, device))
                && (part.is_empty() || self.learned[device].measured(amount))
        });
        let better = self.end(new) < self.end(&old) * (1.0 - LEAST_GAIN);
        (fits && !better).then_some(old)
    }

    /// The work of these components on a device: its amount, and its estimated seconds.
    fn work(&self, device: usize, components: &[usize]) -> (f64, f64) {
        let tasks = components.iter().map(|c| &self.problem.tasks[*c]);
        tasks.fold((0.0, 0.0), |(amount, seconds), task| {
            let more = task.seconds[device].unwrap_or(0.0);
            (amount + task.weight, seconds + more)
        })
    }

    /// Expected seconds of a device for some work: learned, otherwise estimated. What an estimate
    /// leaves out, it leaves out of all devices: it is as far off as that of the measured device
    /// where it is least so. Without that, a device would seem better for not being known.
    fn expect(&self, device: usize, (amount, estimate): (f64, f64)) -> f64 {
        let off = self.off.iter().copied().flatten().reduce(f64::min);
        let estimated = estimate * off.unwrap_or(1.0);
        self.learned[device].expect(amount).unwrap_or(estimated)
    }
}

/// How many of so many components are moved at once in a trial: 1, 2, 4 ... and all.
fn amounts(all: usize) -> impl Iterator<Item = usize> {
    let powers = (0..usize::BITS).map(|shift| 1usize << shift);
    powers
        .take_while(move |count| *count < all)
        .chain((all > 0).then_some(all))
}

fn pairs(devices: usize) -> impl Iterator<Item = (usize, usize)> {
    let all = (0..devices).flat_map(move |from| (0..devices).map(move |to| (from, to)));
    all.filter(|(from, to)| from != to)
}

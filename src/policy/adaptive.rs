//! Adaptive: shares learned from layers place the components of the next layer,
//! or of the next run.
//!
//! Components of one level are a layer. A layer is divided among the devices as
//! DAWL divides a step: the first by what is expected of each device, so that
//! every device that is worth anything shows its speed; each later one such that
//! all are expected to end together, by what the devices took for the layers
//! before. Unlike a step's units components are few and whole, so what is
//! searched for is the whole number of them with the least expected end, and no
//! device need have any.

use std::collections::BTreeMap;

use super::learned::Learned;
use super::ready::Ready;
use super::{Assignment, Finished, Policy, Problem};
use crate::time::Nanos;

/// By how much another division must be better than the present one before a
/// layer is divided anew: less is within what layers vary by themselves.
const WORTHWHILE: f64 = 0.02;

/// Most moves by which a division is improved: it is near the best before.
const MOST_MOVES: usize = 64;

/// A device of which nothing was measured gets a component to show itself,
/// unless that alone is estimated to take so many times the rest's time.
const HOPELESS: f64 = 8.0;

/// The part of a layer's time that its copies to a device must take for them to
/// count: what is written once and stays slows the first run alone.
const LADEN: f64 = 0.1;

/// The policy.
pub struct Adaptive {
    problem: Problem,
    levels: Vec<Vec<usize>>,
    ready: Ready,
    learned: Vec<Learned>,
    lost: Vec<bool>,
    /// By device: components that it has.
    running: Vec<usize>,
    /// By component: its device, once its layer has been divided in this run.
    placed: Vec<Option<usize>>,
    /// By component: where it would go by what is known, once the level before
    /// its own was divided. What only one device needs so stays there; should it
    /// go elsewhere after all, the engine fetches what it needs.
    foreseen: Vec<Option<usize>>,
    /// By level: what is left of it, and what the devices did.
    layers: Vec<Layer>,
    /// By a layer's number of components: how many each device had of the last
    /// such layer.
    last: BTreeMap<usize, Vec<usize>>,
}

/// A layer on its way.
#[derive(Clone, Debug)]
struct Layer {
    left: usize,
    began: Nanos,
    /// By device: what it has done of it.
    done: Vec<Done>,
    /// Whether a device was lost meanwhile: it says nothing then.
    spoilt: bool,
}

/// A device's part of a layer.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    /// The work that it ended, and when it ended the last of it.
    amount: f64,
    ended: Nanos,
    /// Bytes that were written to it meanwhile.
    written: u64,
}

impl Adaptive {
    pub fn new(problem: Problem) -> Self {
        let devices = problem.spots.len();
        let mut made = Self {
            levels: problem.levels(),
            placed: vec![None; problem.tasks.len()],
            foreseen: vec![None; problem.tasks.len()],
            problem,
            ready: Ready::default(),
            learned: vec![Learned::default(); devices],
            lost: vec![false; devices],
            running: vec![0; devices],
            layers: Vec::new(),
            last: BTreeMap::new(),
        };
        made.begin();
        made
    }

    /// How many components each device had of the last layer of so many.
    pub fn division(&self, components: usize) -> Option<&[usize]> {
        self.last.get(&components).map(Vec::as_slice)
    }

    /// The work of these components on a device: its amount, and the seconds
    /// that are said of it.
    fn work(&self, device: usize, components: &[usize]) -> (f64, f64) {
        let tasks = components.iter().map(|c| &self.problem.tasks[*c]);
        tasks.fold((0.0, 0.0), |(amount, seconds), task| {
            let more = task.seconds[device].unwrap_or(0.0);
            (amount + task.weight, seconds + more)
        })
    }

    /// Seconds expected of a device for some work: learned, else as said.
    fn expect(&self, device: usize, (amount, said): (f64, f64)) -> f64 {
        self.learned[device].expect(amount).unwrap_or(said)
    }

    /// Divides a layer: a device for each of its components. And foresees how the
    /// next one will be, since that says what of this one's results stays.
    fn divide(&mut self, level: usize) {
        let parts = self.parts(level, true);
        for (device, part) in parts.iter().enumerate() {
            for component in part {
                self.placed[*component] = Some(device);
            }
        }
        let division: Vec<usize> = parts.iter().map(Vec::len).collect();
        self.last.insert(self.levels[level].len(), division);
        if level + 1 < self.levels.len() {
            for (device, part) in self.parts(level + 1, false).iter().enumerate() {
                for component in part {
                    self.foreseen[*component] = Some(device);
                }
            }
        }
    }

    /// By device: the components of a level that it is to have. With `explore`,
    /// devices of which nothing is known get some.
    fn parts(&self, level: usize, explore: bool) -> Vec<Vec<usize>> {
        let mut free: Vec<usize> = self.levels[level].clone();
        // The heaviest first: they are the hardest to place.
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
            self.show_unknown(&mut parts);
        }
        self.keep(&free, &parts).unwrap_or(parts)
    }

    fn may(&self, component: usize, device: usize) -> bool {
        !self.lost[device] && self.problem.suits(component, device)
    }

    /// When the last device is expected to end.
    fn end(&self, parts: &[Vec<usize>]) -> f64 {
        let ends = parts.iter().enumerate();
        let ends = ends.map(|(device, part)| self.expect(device, self.work(device, part)));
        ends.fold(0.0, f64::max)
    }

    /// Takes components from the device that ends last as long as that helps:
    /// with a fixed part in a device's time, one that does little is better
    /// left out.
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

    /// Gives a component to each device of which nothing is known, so that
    /// something will be, as long as others keep one.
    fn show_unknown(&self, parts: &mut [Vec<usize>]) {
        for device in 0..parts.len() {
            if self.learned[device].knows() || !parts[device].is_empty() {
                continue;
            }
            let fullest = (0..parts.len())
                .filter(|d| parts[*d].len() > 1)
                .max_by_key(|d| (parts[*d].len(), std::cmp::Reverse(*d)));
            let Some(from) = fullest else { continue };
            let bound = HOPELESS * self.end(parts);
            let suitable = parts[from].iter().rposition(|c| {
                self.may(*c, device) && self.expect(device, self.work(device, &[*c])) <= bound
            });
            if let Some(at) = suitable {
                let component = parts[from].remove(at);
                parts[device].push(component);
            }
        }
    }

    /// The last division over again, if that fits this layer, all of it was
    /// measured and the new one is not worth the change.
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
        let better = self.end(new) < self.end(&old) * (1.0 - WORTHWHILE);
        (fits && !better).then_some(old)
    }
}

/// How many of so many components are tried to be moved at once: 1, 2, 4 ... and
/// all.
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

impl Policy for Adaptive {
    fn name(&self) -> &'static str {
        "adaptive"
    }

    fn may_run(&self, component: usize, device: usize) -> bool {
        self.problem.suits(component, device)
    }

    fn certain(&self, component: usize) -> Option<usize> {
        let device = self.placed[component].or(self.foreseen[component]);
        device.filter(|device| !self.lost[*device])
    }

    fn begin(&mut self) {
        self.ready.clear();
        self.running.fill(0);
        self.placed.fill(None);
        self.foreseen.fill(None);
        let devices = self.lost.len();
        let layer = |components: &Vec<usize>| Layer {
            left: components.len(),
            began: Nanos::MAX,
            done: vec![Done::default(); devices],
            spoilt: false,
        };
        self.layers = self.levels.iter().map(layer).collect();
    }

    fn ready(&mut self, component: usize, now: Nanos) {
        let level = self.problem.tasks[component].level;
        let layer = &mut self.layers[level];
        layer.began = layer.began.min(now);
        self.ready.push(&self.problem, component);
    }

    fn next(&mut self, _now: Nanos) -> Option<Assignment> {
        let first = self.ready.iter().find(|c| self.placed[*c].is_none());
        if let Some(component) = first {
            self.divide(self.problem.tasks[component].level);
        }
        let placed = &self.placed;
        let taken = self
            .ready
            .spread(&self.running, |component| placed[component]);
        let (component, device) = taken?;
        self.running[device] += 1;
        Some(Assignment { component, device })
    }

    fn finished(&mut self, finished: &Finished) {
        let running = &mut self.running[finished.device];
        *running = running.saturating_sub(1);
        let task = &self.problem.tasks[finished.component];
        let layer = &mut self.layers[task.level];
        let done = &mut layer.done[finished.device];
        done.amount += task.weight;
        done.ended = done.ended.max(finished.ended);
        done.written += finished.written;
        layer.left = layer.left.saturating_sub(1);
        if layer.left > 0 || layer.spoilt {
            return;
        }
        for (device, done) in layer.done.iter().enumerate() {
            let seconds = done.ended.saturating_sub(layer.began) as f64 / 1e9;
            let copying = self.problem.spots[device].transfer(done.written);
            self.learned[device].learn(done.amount, seconds, copying > seconds * LADEN);
        }
    }

    fn lost(&mut self, device: usize) {
        self.lost[device] = true;
        self.ready.clear();
        self.running.fill(0);
        self.last.clear();
        self.foreseen.fill(None);
        for layer in &mut self.layers {
            layer.spoilt = true;
        }
        for placed in &mut self.placed {
            if *placed == Some(device) {
                *placed = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::testbed::{layers, run};

    /// The least seconds of a layer of 16 over all divisions.
    fn best(seconds: &dyn Fn(usize, usize) -> f64) -> f64 {
        let whole = |device, count| (1..=count).map(|n| seconds(device, n)).sum::<f64>();
        (0..=16)
            .map(|cpu| whole(0, cpu).max(whole(1, 16 - cpu)))
            .fold(f64::INFINITY, f64::min)
    }

    /// Whatever the devices are like, and however wrong what is known at first:
    /// three layers later a layer takes at most 5 % longer than the best one.
    #[test]
    fn three_layers_teach_the_best_division() {
        let machines: [&dyn Fn(usize, usize) -> f64; 6] = [
            // Equal; a CPU of a tenth; one not worth anything; a faster one.
            &|_, _| 1.0,
            &|d, _| [1.0, 0.1][d],
            &|d, _| [9.0, 0.1][d],
            &|d, _| [0.3, 1.0][d],
            // A GPU that fills up: the first component costs most.
            &|d, n| [0.8, if n == 1 { 1.0 } else { 0.1 }][d],
            // A CPU with a start that is worth it only for several.
            &|d, n| [if n == 1 { 2.0 } else { 0.2 }, 1.0][d],
        ];
        for (index, seconds) in machines.iter().enumerate() {
            for guess in [[1.0, 1.0], [1.0, 0.1], [0.1, 1.0]] {
                let problem = layers(6, 16, guess);
                let mut policy = Adaptive::new(problem.clone());
                let told = run(&mut policy, &problem, seconds);
                let best = best(*seconds);
                for (level, (took, had)) in told.iter().enumerate().skip(3) {
                    assert!(
                        *took <= best * 1.05,
                        "machine {index}, {guess:?}: layer {level} takes {took} with {had:?}, \
                         at best {best}; {told:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_was_learned_serves_the_next_run() {
        let problem = layers(1, 16, [1.0, 1.0]);
        let mut policy = Adaptive::new(problem.clone());
        let seconds = |d: usize, _| [1.0, 0.1][d];
        for _ in 0..3 {
            run(&mut policy, &problem, seconds);
        }
        let told = run(&mut policy, &problem, seconds);
        assert!(told[0].0 <= best(&seconds) * 1.05, "{told:?}");
        assert_eq!(policy.division(16), Some(&told[0].1[..]));
    }

    #[test]
    fn noise_does_not_move_a_good_division() {
        let problem = layers(40, 16, [1.0, 1.0]);
        let mut policy = Adaptive::new(problem.clone());
        let rng = std::cell::RefCell::new(fastrand::Rng::with_seed(3));
        let noisy = |d: usize, _| [1.0, 0.25][d] * (0.9 + 0.2 * rng.borrow_mut().f64());
        let told = run(&mut policy, &problem, noisy);
        let odd = told
            .iter()
            .skip(5)
            .filter(|(_, had)| had[0].abs_diff(3) > 1);
        assert_eq!(odd.count(), 0, "{told:?}");
    }

    #[test]
    fn where_the_next_layer_goes_is_foreseen_once_the_layer_before_is_divided() {
        let problem = layers(2, 4, [1.0, 1.0]);
        let mut policy = Adaptive::new(problem.clone());
        // A CPU that is not worth anything: after some layers it gets nothing.
        for _ in 0..3 {
            run(&mut policy, &problem, |d, _| [9.0, 0.1][d]);
        }
        policy.begin();
        assert!((0..8).all(|component| policy.certain(component).is_none()));
        (0..4).for_each(|component| policy.ready(component, 0));
        let first = policy.next(0).map(|assignment| assignment.device);
        assert_eq!(first, Some(1));
        assert!((0..8).all(|component| policy.certain(component) == Some(1)));
        policy.lost(1);
        assert!((0..8).all(|component| policy.certain(component).is_none()));
    }

    #[test]
    fn a_lost_device_gets_nothing() {
        let problem = layers(1, 4, [1.0, 1.0]);
        let mut policy = Adaptive::new(problem);
        policy.lost(0);
        (0..4).for_each(|component| policy.ready(component, 0));
        let devices: Vec<_> = std::iter::from_fn(|| policy.next(0))
            .map(|a| a.device)
            .collect();
        assert_eq!(devices, [1; 4]);
    }
}

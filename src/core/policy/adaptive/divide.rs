//! Dividing a layer: the numbers of components with the earliest expected end.

use super::Adaptive;

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
    pub(super) fn knows_all(&self, parts: &[Vec<usize>]) -> bool {
        let mut parts = parts.iter().enumerate();
        parts.all(|(device, part)| part.is_empty() || self.learned[device].knows())
    }

    /// All components on the device with the most, if others have some and that may be
    /// as good.
    pub(super) fn single_device_instead(
        &self,
        level: usize,
        parts: &[Vec<usize>],
    ) -> Option<Vec<Vec<usize>>> {
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
    pub(super) fn parts(&self, level: usize, explore: bool) -> Vec<Vec<usize>> {
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

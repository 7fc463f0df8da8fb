//! The oracle's search for the best fixed shares.
//!
//! A sweep proposes shares, receives the seconds that each took, and ends with the
//! best. It searches along one line at a time, the split of the work between two
//! groups of devices: first among the CPU devices, then among the others, then
//! between the two kinds. With more than two devices, each device's share is then
//! refined in turn.

use super::Setup;
use super::strategy::is_a_cpu;

/// Shares that are tried first, with their mirror images. They are dense near the
/// ends, since the best CPU share is often a few percent.
const GRID: [f64; 12] = [
    0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.4, 0.5,
];
/// Distance of neighbouring shares at which a line's search ends: near the ends,
/// and elsewhere.
const FINE: f64 = 0.0025;
const COARSE: f64 = 0.005;
const EDGE: f64 = 0.1;
/// Factors of a device's share that its refinement tries.
const REFINE: [f64; 5] = [0.8, 0.92, 1.0, 1.08, 1.25];

/// The search for the minimum along one split.
#[derive(Clone, Debug, Default)]
struct Line {
    /// Shares and their seconds, by share.
    tried: Vec<(f64, f64)>,
    waiting: Vec<f64>,
}

impl Line {
    fn over(mut shares: Vec<f64>) -> Self {
        shares.sort_by(|a, b| b.total_cmp(a));
        shares.dedup();
        Self {
            tried: Vec::new(),
            waiting: shares,
        }
    }

    fn best(&self) -> Option<usize> {
        (0..self.tried.len()).min_by(|a, b| self.tried[*a].1.total_cmp(&self.tried[*b].1))
    }

    /// The next share to try. After the waiting ones, the midpoints between the best
    /// share and its neighbours, until these are near.
    fn next(&mut self) -> Option<f64> {
        if self.waiting.is_empty() {
            let best = self.best()?;
            let at = self.tried[best].0;
            let far = if at.min(1.0 - at) < EDGE {
                FINE
            } else {
                COARSE
            };
            let neighbours = [best.checked_sub(1), Some(best + 1)];
            for neighbour in neighbours.into_iter().flatten() {
                if let Some((share, _)) = self.tried.get(neighbour)
                    && (share - at).abs() > far * 1.001
                {
                    self.waiting.push(0.5 * (share + at));
                }
            }
        }
        self.waiting.last().copied()
    }

    fn tell(&mut self, seconds: f64) {
        if let Some(share) = self.waiting.pop() {
            let at = self.tried.partition_point(|(tried, _)| *tried < share);
            self.tried.insert(at, (share, seconds));
        }
    }
}

/// The split of the work between two groups of devices.
#[derive(Clone, Debug)]
struct Split {
    these: Vec<usize>,
    those: Vec<usize>,
    /// Whether the groups are the CPUs and all others.
    is_by_kind: bool,
    refine: bool,
}

/// See [`Sweep::full_memory`].
fn full_memory(setup: &Setup) -> Option<f64> {
    let held: u64 = setup.devices.iter().filter_map(|d| d.capacity).sum();
    let rest = setup.units.checked_sub(held).filter(|rest| *rest > 0)?;
    Some(rest as f64 / setup.units as f64)
}

/// The search. Take shares from the iterator, measure a run, report its seconds by
/// [`tell`](Self::tell), until the iterator ends. Shares are one a device and sum
/// to 1. Without `tell`, the same shares are proposed again.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The splits to search, the next one last.
    splits: Vec<Split>,
    line: Option<Line>,
    /// Each device's part of its group, or of all the work once joined.
    weights: Vec<f64>,
    /// The CPUs' share with which the others fill their memory and stream nothing:
    /// often the best, and rarely a share of the grid.
    full_memory: Option<f64>,
    proposed: Option<Vec<f64>>,
    best: Option<(Vec<f64>, f64)>,
}

impl Sweep {
    pub fn new(setup: &Setup) -> Self {
        let count = setup.devices.len();
        let of_kind = |cpu: bool| -> Vec<usize> {
            (0..count)
                .filter(|d| is_a_cpu(setup.devices[*d].kind) == cpu)
                .collect()
        };
        let (cpus, others) = (of_kind(true), of_kind(false));
        let mut splits = Vec::new();
        let mut split = |these: &[usize], those: &[usize], refine| {
            if !these.is_empty() && !those.is_empty() {
                splits.push(Split {
                    these: these.to_vec(),
                    those: those.to_vec(),
                    is_by_kind: these == cpus && those == others,
                    refine,
                });
            }
        };
        for kind in [&cpus, &others] {
            for joined in 1..kind.len() {
                split(&kind[..joined], &kind[joined..=joined], false);
            }
        }
        split(&cpus, &others, false);
        if count > 2 {
            for device in (0..count).chain(0..count) {
                let rest: Vec<usize> = (0..count).filter(|d| *d != device).collect();
                split(&[device], &rest, true);
            }
        }
        splits.reverse();
        Self {
            splits,
            line: None,
            weights: vec![1.0; count],
            full_memory: full_memory(setup),
            proposed: (count == 1).then(|| vec![1.0]),
            best: None,
        }
    }

    /// Reports the seconds that the last proposal took; NaN counts as infinite.
    pub fn tell(&mut self, seconds: f64) {
        let seconds = if seconds.is_nan() {
            f64::INFINITY
        } else {
            seconds
        };
        let Some(shares) = self.proposed.take() else {
            return;
        };
        if let Some(line) = &mut self.line {
            line.tell(seconds);
        }
        if self.best.as_ref().is_none_or(|(_, least)| seconds < *least) {
            self.best = Some((shares, seconds));
        }
    }

    /// The best shares so far and their seconds; `None` before the first
    /// measurement.
    pub fn best(&self) -> Option<(&[f64], f64)> {
        (self.best.as_ref()).map(|(shares, seconds)| (shares.as_slice(), *seconds))
    }

    /// The line of the next split. A refinement starts from the best so far.
    fn begin(&mut self, split: &Split) -> Line {
        if !split.refine {
            let mut shares: Vec<f64> = GRID.iter().flat_map(|x| [*x, 1.0 - x]).collect();
            shares.extend(self.full_memory.filter(|_| split.is_by_kind));
            return Line::over(shares);
        }
        if let Some((shares, _)) = &self.best {
            self.weights.clone_from(shares);
        }
        let now: f64 = split.these.iter().map(|d| self.weights[*d]).sum();
        let nearby = REFINE.iter().map(|factor| (now * factor).clamp(0.0, 1.0));
        // Within each side, weights are parts of that side.
        for side in [&split.these, &split.those] {
            let total: f64 = side.iter().map(|d| self.weights[*d]).sum();
            for d in side {
                self.weights[*d] = match total > 0.0 {
                    true => self.weights[*d] / total,
                    false => 1.0 / side.len() as f64,
                };
            }
        }
        Line::over(nearby.collect())
    }

    fn shares(&self, split: &Split, these: f64) -> Vec<f64> {
        let mut shares = vec![0.0; self.weights.len()];
        for (side, part) in [(&split.these, these), (&split.those, 1.0 - these)] {
            for d in side {
                shares[*d] = part * self.weights[*d];
            }
        }
        shares
    }
}

impl Iterator for Sweep {
    type Item = Vec<f64>;

    fn next(&mut self) -> Option<Vec<f64>> {
        while self.proposed.is_none() {
            let split = self.splits.last()?.clone();
            let mut line = match self.line.take() {
                Some(line) => line,
                None => self.begin(&split),
            };
            match line.next() {
                Some(share) => {
                    self.proposed = Some(self.shares(&split, share));
                    self.line = Some(line);
                }
                None => {
                    if let Some(best) = line.best() {
                        self.weights = self.joined(&split, line.tried[best].0);
                    }
                    self.splits.pop();
                }
            }
        }
        self.proposed.clone()
    }
}

impl Sweep {
    /// The weights once a line has found the part of its first group; devices of
    /// neither group keep theirs.
    fn joined(&self, split: &Split, these: f64) -> Vec<f64> {
        let shares = self.shares(split, these);
        (0..self.weights.len())
            .map(
                |d| match split.these.contains(&d) || split.those.contains(&d) {
                    true => shares[d],
                    false => self.weights[d],
                },
            )
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::fixtures::{cpu, gpu, setup};

    /// Runs a sweep over devices that take `1 / rate` a share; gives the best
    /// seconds and the number of runs.
    fn sweep(setup: &Setup, rates: &[f64]) -> (f64, usize) {
        let mut sweep = Sweep::new(setup);
        let mut runs = 0;
        while let Some(shares) = sweep.next() {
            assert!(
                (shares.iter().sum::<f64>() - 1.0).abs() < 1e-9,
                "{shares:?}"
            );
            let times = shares.iter().zip(rates).map(|(share, rate)| share / rate);
            sweep.tell(times.fold(0.0, f64::max));
            runs += 1;
            assert!(runs < 1000);
        }
        (sweep.best().unwrap().1, runs)
    }

    #[test]
    fn two_devices_are_found_to_a_quarter_percent() {
        let setup = setup(1000, vec![cpu(), gpu(1000, 1.0)]);
        for ratio in [0.001, 0.013, 0.04, 0.3, 1.0, 2.7, 30.0, 400.0] {
            let (best, runs) = sweep(&setup, &[ratio, 1.0]);
            assert!(best <= 1.006 / (1.0 + ratio), "{ratio}: {best}");
            assert!(runs < 50, "{ratio}: {runs}");
        }
    }

    #[test]
    fn the_share_that_just_avoids_streaming_is_found() {
        let setup = setup(16384, vec![cpu(), gpu(15697, 1.0)]);
        let mut sweep = Sweep::new(&setup);
        while let Some(shares) = sweep.next() {
            let by_cpu = (shares[0] * 16384.0).round();
            let streams = by_cpu < 687.0;
            sweep.tell(by_cpu + if streams { 2000.0 } else { 0.0 });
        }
        let (shares, _) = sweep.best().unwrap();
        assert_eq!((shares[0] * 16384.0).round(), 687.0);
    }

    #[test]
    fn one_alone_is_tried_too() {
        let setup = setup(1000, vec![cpu(), gpu(1000, 1.0)]);
        let mut sweep = Sweep::new(&setup);
        while let Some(shares) = sweep.next() {
            // Co-running costs more than it gains.
            let corun = if shares.contains(&0.0) { 0.0 } else { 10.0 };
            sweep.tell(corun + shares[0] * 5.0 + shares[1]);
        }
        assert_eq!(sweep.best().unwrap().0, [0.0, 1.0]);
    }

    #[test]
    fn several_of_a_kind_are_divided_by_what_they_do() {
        let devices = vec![cpu(), cpu(), gpu(1000, 1.0), gpu(1000, 1.0), gpu(1000, 1.0)];
        let setup = setup(1000, devices);
        let rates = [0.1, 0.03, 1.0, 3.0, 0.5];
        let (best, runs) = sweep(&setup, &rates);
        assert!(best <= 1.02 / rates.iter().sum::<f64>(), "{best}");
        assert!(runs < 300, "{runs}");
    }

    #[test]
    fn one_device_needs_one_run_and_none_needs_none() {
        assert_eq!(sweep(&setup(10, vec![cpu()]), &[1.0]), (1.0, 1));
        assert_eq!(Sweep::new(&setup(10, vec![])).next(), None);
    }

    #[test]
    fn a_run_that_failed_is_never_the_best() {
        let mut sweep = Sweep::new(&setup(10, vec![cpu(), gpu(10, 1.0)]));
        let mut first = true;
        while sweep.next().is_some() {
            sweep.tell(if first { f64::NAN } else { 1.0 });
            first = false;
        }
        assert_eq!(sweep.best().map(|(_, seconds)| seconds), Some(1.0));
    }
}

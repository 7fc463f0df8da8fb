//! The search for the best map and queue counts: the paper's configurations
//! mc = (q_gpu, q_cpu, h_cpu), and over how many queues a component is spread.

use crate::machine::DeviceKind;
use schemars::JsonSchema;
use serde::Serialize;

/// More components on CPUs are tried as long as the best run with so many takes at
/// most this many times the best of all.
pub const MOST_SLOWDOWN: f64 = 1.5;

/// A configuration of clustering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, JsonSchema, Serialize)]
pub struct Configuration {
    /// Queues of each GPU and of each CPU device.
    pub q_gpu: usize,
    pub q_cpu: usize,
    /// Components of each level on CPU devices.
    pub h_cpu: usize,
    /// Queues that one component is spread over on a GPU; at most `q_gpu`.
    pub width: usize,
}

/// The space of a search: all combinations of these values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    pub q_gpu: Vec<usize>,
    pub q_cpu: Vec<usize>,
    pub h_cpu: Vec<usize>,
    /// Queues that a component is spread over, at most all of the GPU.
    pub widths: Vec<usize>,
}

impl Space {
    /// The space on devices of these kinds: queue counts of GPUs and of CPUs, where
    /// there are any, and up to `on_cpu` of so many components of a level on CPUs,
    /// or all where there is no GPU. A component is spread over all queues, or over
    /// one.
    pub fn on(
        kinds: impl Iterator<Item = DeviceKind>,
        (q_gpu, q_cpu): (Vec<usize>, Vec<usize>),
        components: usize,
        on_cpu: usize,
    ) -> Self {
        let (cpus, gpus): (Vec<_>, Vec<_>) = kinds.partition(|kind| *kind == DeviceKind::Cpu);
        Self {
            q_gpu: if gpus.is_empty() { vec![1] } else { q_gpu },
            q_cpu: if cpus.is_empty() { vec![1] } else { q_cpu },
            h_cpu: match (cpus.is_empty(), gpus.is_empty()) {
                (true, _) => vec![0],
                (false, true) => vec![components],
                (false, false) => (0..=on_cpu.min(components)).collect(),
            },
            widths: vec![usize::MAX, 1],
        }
    }

    /// All configurations of the space, each once. Queue counts of devices without
    /// components do not matter.
    pub fn configurations(&self, components: usize) -> Vec<Configuration> {
        let mut all: Vec<Configuration> = Vec::new();
        for h_cpu in self.h_cpu.iter().copied().filter(|h| *h <= components) {
            for q_gpu in &self.q_gpu {
                for q_cpu in &self.q_cpu {
                    for width in &self.widths {
                        let q_gpu = if h_cpu == components {
                            1
                        } else {
                            (*q_gpu).max(1)
                        };
                        let configuration = Configuration {
                            q_gpu,
                            q_cpu: if h_cpu == 0 { 1 } else { (*q_cpu).max(1) },
                            h_cpu,
                            width: (*width).clamp(1, q_gpu),
                        };
                        if !all.contains(&configuration) {
                            all.push(configuration);
                        }
                    }
                }
            }
        }
        all
    }
}

/// A search in rounds. The first round runs every configuration once, each later one
/// the better half again, so that the best has the median of several runs and is not
/// chosen by noise.
///
/// When the best run with some number of components on CPUs takes
/// `MOST_SLOWDOWN` times the best of all, and more than the best with fewer, larger
/// numbers are left out.
#[derive(Clone, Debug)]
pub struct Search {
    tried: Vec<(Configuration, Vec<f64>)>,
    /// Indices of `tried` that are left in this round, the last one first.
    round: Vec<usize>,
    rounds_left: usize,
}

impl Search {
    /// A search in so many rounds, at least 1.
    pub fn new(configurations: Vec<Configuration>, rounds: usize) -> Self {
        let tried: Vec<_> = configurations
            .into_iter()
            .map(|c| (c, Vec::new()))
            .collect();
        Self {
            round: (0..tried.len()).rev().collect(),
            tried,
            rounds_left: rounds.max(1) - 1,
        }
    }

    /// The next configuration to run; `None` when the search is over.
    pub fn propose(&mut self) -> Option<Configuration> {
        self.give_up();
        if self.round.is_empty() && self.rounds_left > 0 {
            self.rounds_left -= 1;
            let mut order: Vec<usize> = (0..self.tried.len())
                .filter(|index| !self.tried[*index].1.is_empty())
                .collect();
            // Those with the most runs are the better half of the round before.
            order.sort_by(|a, b| {
                let key = |i: usize| (std::cmp::Reverse(self.tried[i].1.len()), self.median(i));
                let (one, other) = (key(*a), key(*b));
                one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
            });
            let most = order.first().map_or(0, |i| self.tried[*i].1.len());
            order.retain(|i| self.tried[*i].1.len() == most);
            order.truncate(order.len().div_ceil(2));
            order.reverse();
            self.round = order;
        }
        self.round.last().map(|index| self.tried[*index].0)
    }

    /// The seconds of the configuration that was proposed last; infinity if it cannot
    /// run.
    pub fn tell(&mut self, seconds: f64) {
        if let Some(index) = self.round.pop() {
            self.tried[index].1.push(seconds);
        }
    }

    /// Leaves numbers of components on CPUs out of the first round that would be
    /// slower.
    fn give_up(&mut self) {
        let Some(next) = self.round.last().map(|index| self.tried[*index].0.h_cpu) else {
            return;
        };
        let seconds = |wanted: &dyn Fn(usize) -> bool| {
            let tried = self.tried.iter().filter(|(c, _)| wanted(c.h_cpu));
            let seconds = tried.flat_map(|(_, seconds)| seconds.iter().copied());
            seconds.fold(f64::INFINITY, f64::min)
        };
        // The number just tried, and the one before it.
        let numbers = |below: usize| {
            let tried = self.tried.iter().filter(|(_, seconds)| !seconds.is_empty());
            tried.map(|(c, _)| c.h_cpu).filter(|h| *h < below).max()
        };
        let Some((last, before)) = numbers(next).and_then(|h| Some((h, numbers(h)?))) else {
            return;
        };
        let (best, last_best) = (seconds(&|_| true), seconds(&|h| h == last));
        if last_best > best * MOST_SLOWDOWN && last_best > seconds(&|h| h == before) {
            let tried = &self.tried;
            self.round.retain(|index| tried[*index].0.h_cpu < next);
        }
    }

    fn median(&self, index: usize) -> f64 {
        let mut seconds = self.tried[index].1.clone();
        seconds.sort_by(f64::total_cmp);
        seconds
            .get(seconds.len() / 2)
            .copied()
            .unwrap_or(f64::INFINITY)
    }

    /// The best so far and its median seconds, among those with the most runs.
    pub fn best(&self) -> Option<(Configuration, f64)> {
        let most = self.tried.iter().map(|(_, s)| s.len()).max()?;
        (0..self.tried.len())
            .filter(|i| most > 0 && self.tried[*i].1.len() == most)
            .map(|i| (self.tried[i].0, self.median(i)))
            .filter(|(_, seconds)| seconds.is_finite())
            .min_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// Every configuration that could run, with its median seconds.
    pub fn results(&self) -> Vec<(Configuration, f64)> {
        (0..self.tried.len())
            .filter(|i| !self.tried[*i].1.is_empty())
            .map(|i| (self.tried[i].0, self.median(i)))
            .filter(|(_, seconds)| seconds.is_finite())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> Space {
        Space {
            q_gpu: (1..=5).collect(),
            q_cpu: (1..=5).collect(),
            h_cpu: (0..=16).collect(),
            widths: vec![usize::MAX, 1],
        }
    }

    #[test]
    fn equivalent_configurations_are_tried_once() {
        let all = space().configurations(16);
        // 5 GPU queues, of two widths but for one queue: 9; CPU queues do not
        // matter without work for them, nor GPU queues without any for it.
        assert_eq!(all.len(), 9 + 15 * 9 * 5 + 5);
    }

    #[test]
    fn the_best_is_found_through_noise() {
        let mut noise = 0.03;
        let mut search = Search::new(space().configurations(16), 4);
        let truth = |c: &Configuration| {
            let cpu = c.h_cpu as f64 / c.q_cpu as f64;
            let gpu = (16 - c.h_cpu) as f64 / c.q_gpu as f64 * 0.1;
            cpu.max(gpu) + 1.0 + c.width as f64 * 0.01
        };
        let mut count = 0;
        while let Some(configuration) = search.propose() {
            noise = -noise;
            count += 1;
            search.tell(truth(&configuration) * (1.0 + noise));
        }
        let all = search.results();
        assert!(count < 2 * all.len());
        let (best, _) = search.best().expect("a best");
        let least = all
            .iter()
            .map(|(c, _)| truth(c))
            .fold(f64::INFINITY, f64::min);
        assert!(truth(&best) <= least * 1.06, "{best:?}");
    }

    #[test]
    fn slower_numbers_are_left_out() {
        let mut search = Search::new(space().configurations(16), 1);
        let mut most = 0;
        while let Some(configuration) = search.propose() {
            most = most.max(configuration.h_cpu);
            search.tell([2.0, 1.5, 1.9, 2.4, 3.0][configuration.h_cpu.min(4)]);
        }
        assert_eq!(search.best().map(|(c, _)| c.h_cpu), Some(1));
        // Three took 1.6 times as long as one, and longer than two.
        assert_eq!(most, 3);
    }

    #[test]
    fn what_cannot_run_is_never_the_best() {
        let mut search = Search::new(space().configurations(2), 1);
        while let Some(configuration) = search.propose() {
            search.tell(if configuration.h_cpu == 1 {
                2.0
            } else {
                f64::INFINITY
            });
        }
        assert_eq!(search.best().map(|(c, _)| c.h_cpu), Some(1));
        assert_eq!(Search::new(Vec::new(), 3).best(), None);
    }
}

//! Kinds of subtasks: those of tasks of one name. A chain of tasks may have several, and a
//! device that is fast at one of them may be slow at another.

use std::sync::Arc;

use super::rate::{Mean, Rate, weight};
use crate::cluster::info::DeviceInfo;
use crate::cluster::space::Spaces;
use crate::cluster::task::Task;
use crate::cluster::task::chain::Chain;
use crate::time::Nanos;

/// The kinds of a chain's subtasks.
pub struct Kinds {
    chain: Arc<Chain>,
    /// By task of the chain.
    of_task: Vec<usize>,
    kinds: Vec<Kind>,
    /// The one that is most of the work.
    main: usize,
}

struct Kind {
    name: String,
    mean: Mean,
    /// How much work the mean one is.
    work: f64,
}

impl Kinds {
    /// The kinds of a chain. How much work their subtasks are follows from the device that is
    /// expected to be the fastest for each kind: the mean one of the kind with most of the work
    /// is 1.
    pub fn of<'a>(
        chain: Arc<Chain>,
        spaces: Option<&Spaces>,
        devices: impl Iterator<Item = &'a DeviceInfo> + Clone,
    ) -> Self {
        let mut names: Vec<&str> = Vec::new();
        let tasks = chain.tasks().iter();
        let of_task: Vec<usize> = tasks
            .map(|task| {
                let known = names.iter().position(|name| *name == task.name());
                known.unwrap_or_else(|| {
                    names.push(task.name());
                    names.len() - 1
                })
            })
            .collect();
        let mut kinds = Vec::with_capacity(names.len());
        let (mut main, mut most) = (0, 0.0);
        for (kind, name) in names.into_iter().enumerate() {
            let tasks = chain.tasks().iter().zip(&of_task);
            let tasks = tasks.filter(|(_, of)| **of == kind);
            let tasks: Vec<&dyn Task> = tasks.map(|(task, _)| &**task).collect();
            let mean = Mean::of(&tasks, spaces);
            let times = devices.clone().map(|of| of.seconds(mean.cost, mean.copied));
            let work = times.filter(|time| *time > 0.0).min_by(f64::total_cmp);
            let work = work.unwrap_or(1.0);
            let count: u64 = tasks.iter().map(|task| task.count()).sum();
            if work * count as f64 > most {
                (main, most) = (kind, work * count as f64);
            }
            let name = name.to_owned();
            kinds.push(Kind { name, mean, work });
        }
        let unit = kinds[main].work;
        kinds.iter_mut().for_each(|kind| kind.work /= unit);
        Self {
            of_task,
            kinds,
            main,
            chain,
        }
    }

    /// Their names, by kind.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.kinds.iter().map(|kind| &*kind.name)
    }

    /// The kind that is most of the work.
    pub fn main(&self) -> usize {
        self.main
    }

    /// The kind of a subtask.
    pub fn kind(&self, subtask: u64) -> usize {
        self.of_task[self.chain.place(subtask).0]
    }

    /// How much work a subtask is.
    pub fn weight(&self, subtask: u64) -> f64 {
        let kind = &self.kinds[self.kind(subtask)];
        kind.work * weight(self.chain.cost(subtask), kind.mean.cost)
    }
}

/// How fast a device is, by kind of subtasks.
#[derive(Clone, Debug)]
pub struct Rates(Vec<Rate>);

impl Rates {
    /// A device of which only its description is known.
    pub fn new(device: &DeviceInfo, kinds: &Kinds) -> Self {
        let kinds = kinds.kinds.iter();
        Self(
            kinds
                .map(|of| Rate::new(device, of.mean, of.work))
                .collect(),
        )
    }

    /// The device's rate for a kind.
    pub fn of(&self, kind: usize) -> &Rate {
        &self.0[kind]
    }

    /// A device that took longer than its description says in an earlier task, by kind.
    pub fn corrected(self, correction: impl Fn(usize) -> f64) -> Self {
        let rates = self.0.into_iter().enumerate();
        Self(
            rates
                .map(|(kind, rate)| rate.corrected(correction(kind)))
                .collect(),
        )
    }

    /// The device has ended a subtask of a kind and a weight.
    pub fn done(&mut self, (kind, weight): (usize, f64), took: Nanos, now: Nanos) {
        let last = self.0.iter().filter_map(Rate::last).max();
        let is_same = self.0[kind].last() == last;
        let before = last.map(|last| (last, is_same));
        self.0[kind].done(weight, took, (before, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::space::{Block, SpaceBlock, SpaceId};
    use crate::cluster::task::chain::Chaining;
    use crate::cluster::task::listed::ListedTask;
    use crate::codelet::Cost;

    const SECOND: Nanos = 1_000_000_000;

    /// So many subtasks of this cost, which write an element each.
    fn alike(name: &'static str, count: u64, cost: Cost) -> Arc<dyn Task> {
        let space = SpaceId(0);
        let element = |subtask| Block::new(0..1, subtask..subtask + 1);
        let task = ListedTask::of(name, count, cost);
        Arc::new(task.writing(|subtask| SpaceBlock {
            space,
            block: element(subtask),
        }))
    }

    fn device(flops: f64, link_bandwidth: f64) -> DeviceInfo {
        DeviceInfo {
            name: "device".into(),
            flops,
            memory_bandwidth: f64::INFINITY,
            link_bandwidth,
            depth: 2,
        }
    }

    /// A task that copies for 8 s on the fast device and takes 4 s on the slow one; two that
    /// compute for 1 s on the fast one and 10 s on the slow one, twenty times each.
    fn kinds(devices: &[DeviceInfo; 2]) -> (Arc<Chain>, Kinds) {
        let copies = Cost {
            flops: 4.0,
            bytes: 8.0,
        };
        let computes = Cost {
            flops: 10.0,
            bytes: 0.0,
        };
        let mut chaining = Chaining::new(alike("computes", 20, computes));
        let copies = alike("copies", 1, copies);
        let computes = alike("computes", 20, computes);
        assert!(chaining.push(&copies) && chaining.push(&computes));
        let chain = Arc::new(chaining.build());
        let kinds = Kinds::of(Arc::clone(&chain), None, devices.iter());
        (chain, kinds)
    }

    #[test]
    fn devices_are_unlike_for_unlike_kinds() {
        let devices = [device(10.0, 1.0), device(1.0, f64::INFINITY)];
        let (chain, kinds) = kinds(&devices);
        assert!(kinds.names().eq(["computes", "copies"]));
        assert_eq!(kinds.main(), 0);
        let of = |task, own| {
            let subtask = chain.number(task, own);
            (kinds.kind(subtask), kinds.weight(subtask))
        };
        assert_eq!(
            (of(0, 3), of(1, 0), of(2, 19)),
            ((0, 1.0), (1, 4.0), (0, 1.0))
        );
        let [fast, slow] = devices.map(|device| Rates::new(&device, &kinds));
        let seconds = |rates: &Rates| {
            let seconds = |(kind, weight): (usize, f64)| rates.of(kind).seconds() * weight;
            (seconds(of(0, 0)), seconds(of(1, 0)))
        };
        assert_eq!(seconds(&fast), (1.0, 8.0));
        assert_eq!(seconds(&slow), (10.0, 4.0));
    }

    #[test]
    fn what_one_kind_took_says_nothing_of_another() {
        let devices = [device(10.0, 1.0), device(1.0, f64::INFINITY)];
        let (_, kinds) = kinds(&devices);
        let mut rates = Rates::new(&devices[0], &kinds);
        rates.done((0, 1.0), SECOND, SECOND);
        rates.done((0, 1.0), SECOND, 2 * SECOND);
        // It was copied while others computed, so it ends soon after one of them.
        rates.done((1, 4.0), 9 * SECOND, 2 * SECOND + 1000);
        assert_eq!(rates.of(1).seconds() * 4.0, 8.0);
        assert_eq!(rates.of(0).seconds(), 1.0);
    }
}

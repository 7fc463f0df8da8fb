//! How fast a device is: first as its description says, then as measured.

use std::sync::Arc;

use crate::cluster::info::DeviceInfo;
use crate::cluster::space::Spaces;
use crate::cluster::task::Task;
use crate::cluster::task::chain::Chain;
use crate::codelet::Cost;
use crate::time::Nanos;

/// The part of what was measured before that still counts when another subtask is done:
/// about the last four count, so that one disturbed subtask does not turn a decision and
/// a device that slows is noticed after a few.
const REMEMBERED: f64 = 0.75;

/// Subtasks that are asked for the mean cost of a task.
const SAMPLES: u64 = 64;

/// The mean of a task's subtasks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    pub cost: Cost,
    /// Bytes of what they read and write, which a device with its own memory may have to copy.
    pub copied: f64,
}

impl Mean {
    /// The mean of tasks, from at most `SAMPLES` subtasks. Where nothing is known of the
    /// spaces, a device copies what it accesses.
    pub fn of(tasks: &[&dyn Task], spaces: Option<&Spaces>) -> Self {
        let count: u64 = tasks.iter().map(|task| task.count()).sum();
        let samples = count.min(SAMPLES);
        let mut mean = Self::default();
        let (mut rest, mut first) = (tasks.iter(), 0);
        let mut present = rest.next();
        for sample in (0..samples).map(|sample| sample * count / samples) {
            while let Some(task) = present
                && sample >= first + task.count()
            {
                first += task.count();
                present = rest.next();
            }
            let Some(task) = present else { break };
            let subtask = sample - first;
            let cost = task.cost(subtask);
            let parts = || task.reads(subtask).into_iter().chain(task.writes(subtask));
            let bytes = |spaces: &Spaces| parts().map(|part| spaces.bytes(&part) as f64).sum();
            let copied: f64 = spaces.map_or(cost.bytes, bytes);
            mean.cost.flops += cost.flops / samples as f64;
            mean.cost.bytes += cost.bytes / samples as f64;
            mean.copied += copied / samples as f64;
        }
        mean
    }
}

/// How much work a subtask is, where the mean one is 1: the larger of its shares in
/// operations and in bytes.
pub fn weight(cost: Cost, mean: Cost) -> f64 {
    let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    let weight = share(cost.flops, mean.flops).max(share(cost.bytes, mean.bytes));
    if weight > 0.0 { weight } else { 1.0 }
}

/// The time that a device takes for a subtask when it has the next ones at hand.
#[derive(Clone, Debug)]
pub struct Rate {
    /// Seconds for a weight of 1 as the description says.
    described: f64,
    /// How many times longer such subtasks took in an earlier task.
    correction: f64,
    work: f64,
    seconds: f64,
    /// The part of these that counts when another subtask is done.
    remembered: f64,
    last: Option<Nanos>,
}

impl Rate {
    /// A device of which only its description is known, for subtasks of this mean, which is so
    /// much work.
    pub fn new(device: &DeviceInfo, mean: Mean, work: f64) -> Self {
        Self {
            described: device.seconds(mean.cost, mean.copied) / work,
            correction: 1.0,
            work: 0.0,
            seconds: 0.0,
            remembered: REMEMBERED,
            last: None,
        }
    }

    /// A device that took longer than its description says in an earlier task.
    pub fn corrected(self, correction: f64) -> Self {
        Self { correction, ..self }
    }

    /// How many times longer than described subtasks take, as far as is known of a device
    /// that has computed a subtask of a weight for `busy` seconds since its last result.
    pub fn correction(&self, busy: f64, weight: f64) -> f64 {
        match self.described > 0.0 {
            true => self.seconds_at_least(busy, weight) / self.described,
            false => self.correction,
        }
    }

    /// The device has ended a subtask. The time since it ended the one before is what a
    /// subtask costs, as subtasks overlap; it is not, where the device waited for work
    /// between them, and then it is longer than `took`. `before` is when it ended the one
    /// before, and whether that was of the same kind: if not, the time between them tells
    /// nothing, and only that no more than `took` was needed is known.
    pub fn done(
        &mut self,
        weight: f64,
        took: Nanos,
        (before, now): (Option<(Nanos, bool)>, Nanos),
    ) {
        let took = took as f64 * 1e-9;
        let costs = match before {
            Some((last, true)) => took.min(now.saturating_sub(last) as f64 * 1e-9),
            Some((_, false)) if self.seconds() > 0.0 => took.min(self.seconds() * weight),
            _ => took,
        };
        let is_first = !self.is_measured();
        self.work = self.work * self.remembered + weight;
        self.seconds = self.seconds * self.remembered + costs;
        self.remembered = match is_first {
            // What it took while others overlapped it says little.
            true => 0.0,
            false => REMEMBERED,
        };
        self.last = Some(now);
    }

    /// When it last ended a subtask.
    pub fn last(&self) -> Option<Nanos> {
        self.last
    }

    /// Whether it has ended a subtask.
    pub fn is_measured(&self) -> bool {
        self.work > 0.0
    }

    /// Seconds for a weight of 1. It is 0 where nothing is known.
    pub fn seconds(&self) -> f64 {
        match self.is_measured() {
            true => self.seconds / self.work,
            false => self.described * self.correction,
        }
    }

    /// As [`Self::seconds`], of a device that has computed a subtask of a weight for `busy`
    /// seconds since its last result: a longer time than expected is evidence before the result
    /// is there.
    pub fn seconds_at_least(&self, busy: f64, weight: f64) -> f64 {
        let expected = self.seconds();
        if busy <= expected * weight {
            return expected;
        }
        (self.seconds * self.remembered + busy) / (self.work * self.remembered + weight)
    }
}

// Kinds of subtasks: those of tasks of one name. A chain of tasks may have several, and a
// device that is fast at one of them may be slow at another.

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
    use crate::cluster::task::fixtures::ListedTask;
    use crate::codelet::Cost;

    fn rate() -> Rate {
        let device = DeviceInfo {
            name: "gpu".into(),
            flops: 1e9,
            memory_bandwidth: 1e9,
            link_bandwidth: f64::INFINITY,
            depth: 2,
        };
        let cost = Cost {
            flops: 2e9,
            bytes: 1e9,
        };
        let copied = cost.bytes;
        Rate::new(&device, Mean { cost, copied }, 1.0)
    }

    /// When the device has ended the subtask before, which was of the same kind.
    fn last(rate: &Rate) -> Option<(Nanos, bool)> {
        rate.last().map(|last| (last, true))
    }

    #[test]
    fn what_follows_another_kind_costs_no_more_than_it_took() {
        let mut rate = rate();
        let other = |now: Nanos| (Some((now - 1000, false)), now);
        rate.done(1.0, 1_500_000_000, other(5_000_000_000));
        assert_eq!(rate.seconds(), 1.5, "less than described");
        rate.done(1.0, 9_000_000_000, other(14_000_000_000));
        assert_eq!(rate.seconds(), 1.5, "it waited for the other one");
    }

    #[test]
    fn measured_times_replace_the_description() {
        let mut rate = rate();
        assert_eq!(rate.seconds(), 2.0);
        // Two at once, each of 8 s: one every 4 s.
        for number in 1..20 {
            let now = number * 4_000_000_000;
            rate.done(1.0, 8_000_000_000, (last(&rate), now));
        }
        assert!((rate.seconds() - 4.0).abs() < 0.1, "{}", rate.seconds());
    }

    #[test]
    fn the_first_of_overlapping_subtasks_counts_until_there_is_a_second() {
        let mut rate = rate();
        // Four at once: each takes 8 s, and one ends every 2 s.
        rate.done(1.0, 8_000_000_000, (last(&rate), 8_000_000_000));
        assert_eq!(rate.seconds(), 8.0);
        rate.done(1.0, 8_000_000_000, (last(&rate), 10_000_000_000));
        assert_eq!(rate.seconds(), 2.0);
        // The second one counts beside the third.
        rate.done(1.0, 8_000_000_000, (last(&rate), 13_000_000_000));
        assert_eq!(
            rate.seconds(),
            (2.0 * REMEMBERED + 3.0) / (REMEMBERED + 1.0)
        );
    }

    #[test]
    fn what_one_task_has_shown_is_expected_in_the_next() {
        let mut rate = rate();
        assert_eq!(rate.correction(0.0, 1.0), 1.0);
        rate.done(1.0, 6_000_000_000, (last(&rate), 6_000_000_000));
        assert_eq!(rate.correction(0.0, 1.0), 3.0);
        let next = self::rate().corrected(rate.correction(0.0, 1.0));
        assert_eq!((next.seconds(), next.correction(0.0, 1.0)), (6.0, 3.0));
        assert_eq!(
            next.correction(18.0, 1.0),
            9.0,
            "it has not reported for longer"
        );
    }

    #[test]
    fn a_device_that_is_late_counts_as_slower() {
        let mut rate = rate();
        rate.done(1.0, 1_000_000_000, (last(&rate), 1_000_000_000));
        assert_eq!(rate.seconds_at_least(0.5, 1.0), 1.0);
        assert!(rate.seconds_at_least(10.0, 1.0) > 5.0);
        assert_eq!(rate.seconds_at_least(10.0, 12.0), 1.0, "it does more");
    }

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

//! How fast a device is: first as its description says, then as measured.

use crate::cluster::info::DeviceInfo;
use crate::cluster::space::Spaces;
use crate::cluster::task::Task;
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

#[cfg(test)]
mod tests {
    use super::*;

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
}

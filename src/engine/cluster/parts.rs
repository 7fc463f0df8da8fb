//! Subtasks that several devices of a node compute together: a part is a kernel of the open
//! graph, with its own views and its own results.

use std::ops::Range;

use super::ClusterError;
use super::subtasks::{Computing, EndedSubtask, OfChain, Running, Subtasks, Written};
use crate::codelet::{Cost, Name};
use crate::graph::Ended;
use crate::runtime::Runtime;
use crate::time::Nanos;
use pdawl_core::balance::apportion::{Runner, finish};
use pdawl_core::cluster::protocol::DeviceIndex;
use pdawl_core::cluster::space::{SpaceBlock, Spaces};
use pdawl_core::cluster::task::{Computed, Task, TaskId};
use pdawl_core::graph::KernelId;

/// A device that has never run a codelet may be so many times slower than expected, unless it is
/// like the one that is expected to be the fastest.
const DOUBT: f64 = 3.0;

/// A division that took more than this part of the time of one device is not repeated.
const GAINS: f64 = 0.95;

/// What subtasks of a codelet took, in the time that is expected of the fastest device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tried {
    /// The last one that one device has computed, and the last one that several have.
    whole: Option<f64>,
    divided: Option<f64>,
}

impl Tried {
    /// Whether it may be divided. After the first division one device computes, so that both are
    /// known: devices that share cores or a bus may do less together than each by itself.
    fn may_divide(self) -> bool {
        match (self.whole, self.divided) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(whole), Some(divided)) => divided <= GAINS * whole,
        }
    }
}

/// A subtask whose parts have not all ended.
pub(super) struct Divided {
    left: usize,
    /// What has ended: the device, how long it took, and the part of the work.
    ended: Vec<(DeviceIndex, Nanos, f64)>,
    written: Written,
}

impl Subtasks {
    /// By device that computes a part of a subtask: its units. `None` if one computes it.
    pub(super) fn parts(
        &self,
        runtime: &dyn Runtime,
        spaces: &Spaces,
        of: &OfChain,
        present: &[u64],
    ) -> Option<Vec<(usize, Range<u64>)>> {
        let (task, (_, subtask)) = (of.task, of.place());
        let units = task.units(subtask);
        if units < 2 {
            return None;
        }
        let bytes = |parts: &[SpaceBlock]| parts.iter().map(|part| spaces.bytes(part)).sum::<u64>();
        let read = bytes(&task.reads(subtask)) as f64;
        // What half of the units read tells what all parts read.
        let half = task.part(subtask, 0..units / 2)?;
        let rest = task.part(subtask, units / 2..units)?;
        let by_parts = (bytes(&half.reads(0)) + bytes(&rest.reads(0))) as f64;
        let common = (by_parts - read).clamp(0.0, read);
        let of_units = read - common + bytes(&task.writes(subtask)) as f64;
        let codelet = task.launch(subtask).codelet;
        let tried = self.tried.get(&codelet.name.to_string());
        if !tried.copied().unwrap_or_default().may_divide() {
            return None;
        }
        let seconds = |cost: Cost| {
            let expected = self.devices.iter().map(|device| device.seconds(cost, 0.0));
            expected.collect::<Vec<f64>>()
        };
        let cost = task.cost(subtask);
        let expected = seconds(cost);
        let needed = memory_bytes(task, subtask, spaces);
        let able = self.seconds(runtime, &codelet, &expected).into_iter();
        let able: Vec<bool> = (able.enumerate())
            .map(|(device, seconds)| seconds.is_some() && self.graph.has_room(device, needed))
            .collect();
        let best = |seconds: &[f64]| {
            let able = (0..seconds.len()).filter(|device| able[*device]);
            able.min_by(|one, other| seconds[*one].total_cmp(&seconds[*other]))
        };
        let fastest = best(&expected)?;
        let paces = self.devices.iter().enumerate().map(|(index, device)| {
            able[index].then(|| {
                let copies = device.copy_seconds(of_units + common);
                let all = match self.measured(&codelet.name, index) {
                    Some(factor) => factor * device.seconds(cost, cost.bytes),
                    None if self.are_alike(index, fastest) => expected[index] + copies,
                    None => DOUBT * expected[index] + copies,
                };
                let part = device.copy_seconds(common).min(all);
                let units = all - part;
                Pace { units, part }
            })
        });
        let paces: Vec<_> = paces.collect();
        let all = present
            .iter()
            .map(|other| seconds(of.chain.cost(*other))[fastest]);
        let work = all.sum::<f64>() / expected[fastest].max(1e-12);
        division(&paces, work, units)
    }

    /// How many times longer than expected a codelet takes, as measured on a device or on one
    /// like it.
    fn measured(&self, codelet: &Name, device: usize) -> Option<f64> {
        let learned = |other: usize| self.learned.get(&(codelet.to_string(), other)).copied();
        let mut others = (0..self.devices.len()).filter(|other| self.are_alike(*other, device));
        learned(device).or_else(|| others.find_map(learned))
    }

    fn are_alike(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.devices[one], &self.devices[other]);
        (one.flops, one.memory_bandwidth) == (other.flops, other.memory_bandwidth)
    }

    /// Begins the parts of a subtask.
    ///
    /// # Errors
    /// Parts that cannot be computed, and what the runtime refuses.
    pub(super) fn begin_parts(
        &mut self,
        runtime: &mut dyn Runtime,
        spaces: &Spaces,
        of: OfChain,
        parts: Vec<(usize, Range<u64>)>,
    ) -> Result<(), ClusterError> {
        let (task, (_, subtask)) = (of.task, of.place());
        let all = task.units(subtask) as f64;
        let mut made = Vec::with_capacity(parts.len());
        for (device, units) in parts {
            let fraction = (units.end - units.start) as f64 / all;
            let Some(part) = task.part(subtask, units) else {
                continue;
            };
            check_part(task, subtask, &*part)?;
            made.push((part, (device, fraction)));
        }
        let divided = Divided {
            left: made.len(),
            ended: Vec::new(),
            written: Vec::new(),
        };
        self.divided.insert((of.id, of.subtask), divided);
        for (part, only) in &made {
            let computing = Computing {
                of,
                task: &**part,
                number: 0,
                only: Some(*only),
            };
            self.begin(runtime, spaces, &computing)?;
        }
        Ok(())
    }

    /// A kernel has ended, and with it perhaps its subtask.
    pub(super) fn ended(&mut self, running: Running, ended: &Ended) -> Option<EndedSubtask> {
        let device = DeviceIndex(ended.device as u32);
        let took = (ended.seconds * 1e9).round() as Nanos;
        let (task, subtask) = (running.task, running.subtask);
        let fastest = running.expected.iter().copied().min_by(f64::total_cmp);
        let fastest = fastest.unwrap_or(0.0).max(1e-12);
        let Some(fraction) = running.fraction else {
            let tried = self.tried.entry(running.codelet).or_default();
            tried.whole = Some(ended.seconds / fastest);
            return Some(EndedSubtask {
                device,
                took,
                task,
                subtask,
                parts: vec![(device, took)],
                written: running.written,
            });
        };
        let divided = self.divided.get_mut(&(task, subtask))?;
        divided.left -= 1;
        divided.ended.push((device, took, fraction));
        divided.written.extend(running.written);
        if divided.left > 0 {
            return None;
        }
        let divided = self.divided.remove(&(task, subtask))?;
        let last = divided.ended.iter().map(|(_, took, _)| *took).max()?;
        let tried = self.tried.entry(running.codelet).or_default();
        tried.divided = Some(last as f64 / 1e9 / (fastest / fraction));
        let greatest = (divided.ended.iter()).max_by(|one, other| one.2.total_cmp(&other.2));
        let (device, took, fraction) = *greatest?;
        let parts = divided.ended.iter();
        Some(EndedSubtask {
            device,
            took: (took as f64 / fraction).round() as Nanos,
            task,
            subtask,
            parts: parts.map(|(device, took, _)| (*device, *took)).collect(),
            written: divided.written,
        })
    }

    /// The parts of a subtask are of no use, as one of them cannot be computed.
    pub(super) fn undo(&mut self, id: (TaskId, u64)) {
        if let Some(divided) = self.divided.remove(&id) {
            self.discard(divided.written);
        }
        let others = self.running.iter();
        let others = others.filter(|(_, running)| (running.task, running.subtask) == id);
        let others: Vec<KernelId> = others.map(|(kernel, _)| *kernel).collect();
        for kernel in others {
            if self.graph.revoke(kernel) {
                self.running.remove(&kernel);
            } else if let Some(running) = self.running.get_mut(&kernel) {
                // It cannot be stopped.
                running.is_useless = true;
            }
        }
        self.changed = true;
    }
}

/// The bytes of the memory that a subtask uses, at most.
fn memory_bytes(task: &dyn Computed, subtask: u64, spaces: &Spaces) -> u64 {
    let length = |part: &SpaceBlock, keeps_place: bool| match keeps_place {
        true => spaces
            .extent(part.space)
            .bytes(&spaces.extent(part.space).whole()),
        false => spaces.bytes(part),
    };
    let reads = task.read_arguments(subtask).into_iter();
    let reads = reads.map(|read| match (read.keeps_places, read.parts.first()) {
        (true, Some(first)) => length(first, true),
        _ => read.parts.iter().map(|part| length(part, false)).sum(),
    });
    let writes = task
        .writes(subtask)
        .into_iter()
        .zip(task.keeps_places(subtask));
    // One that is changed is a copy.
    let writes = writes.map(|(part, keeps_place)| 2 * length(&part, keeps_place));
    reads.sum::<u64>() + writes.sum::<u64>()
}

/// Checks that a part of a subtask can be computed, of what the subtask reads.
fn check_part(task: &dyn Computed, subtask: u64, part: &dyn Computed) -> Result<(), ClusterError> {
    let here = task.reads(subtask);
    let is_here = |read: &SpaceBlock| {
        let mut here = here.iter().filter(|all| all.space == read.space);
        here.any(|all| all.block.contains(&read.block))
    };
    let reads = part.reads(0);
    let absent = reads.iter().find(|read| !is_here(read)).map(|read| {
        let SpaceBlock { space, block } = read;
        let (rows, columns) = (&block.rows, &block.columns);
        format!(
            "it reads rows {rows:?} and columns {columns:?} of space {}, which the subtask does \
             not read",
            space.0
        )
    });
    match absent.or_else(|| part.fault(0)) {
        None => Ok(()),
        Some(why) => Err(ClusterError::Refused(format!(
            "a part of subtask {subtask} of {} cannot be computed: {why}",
            task.name()
        ))),
    }
}

/// A division pays where it takes at most so much of the time that the best device needs alone.
const PAYS: f64 = 0.8;

/// Seconds that a part takes beside computing and copies, for its launch and its end.
const PART: f64 = 50e-6;

/// What a device is expected to take for a subtask by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    /// Seconds for all units; a part takes its fraction of them.
    pub units: f64,
    /// Seconds for any part, however small, as for copies of what all parts read.
    pub part: f64,
}

impl Pace {
    fn seconds(self, fraction: f64) -> f64 {
        self.part + self.units * fraction
    }
}

/// By device that takes part: its units of so many. `None` if a division does not pay. `work` is
/// that of all subtasks of the node that have not ended, in units of this one's, which is one of
/// them: several of them keep the devices busy without a division.
fn division(paces: &[Option<Pace>], work: f64, units: u64) -> Option<Vec<(usize, Range<u64>)>> {
    let able = || paces.iter().flatten();
    if units < 2 || able().count() < 2 {
        return None;
    }
    let best = able().map(|pace| pace.seconds(1.0));
    let best = best.min_by(f64::total_cmp)?;
    // A device that takes no part has no rate.
    let runner = |pace: &Option<Pace>| {
        pace.map_or(Runner::default(), |pace| Runner {
            ready: pace.part,
            rate: 1.0 / pace.units.max(1e-12),
        })
    };
    let runners: Vec<Runner> = paces.iter().map(runner).collect();
    let end = finish(1.0, &runners, None);
    let mut parts = Vec::new();
    let (mut begin, mut sum) = (0, 0.0);
    for (device, runner) in runners.iter().enumerate() {
        sum += (end - runner.ready).max(0.0) * runner.rate;
        let cut = ((units as f64 * sum).round() as u64).clamp(begin, units);
        if cut > begin {
            parts.push((device, begin..cut));
        }
        begin = cut;
    }
    // Roundings of fractions must not leave units out.
    parts.last_mut()?.1.end = units;
    let seconds = |(device, own): &(usize, Range<u64>)| {
        let pace = paces[*device].unwrap_or(Pace {
            units: 0.0,
            part: 0.0,
        });
        pace.seconds((own.end - own.start) as f64 / units as f64)
    };
    let longest = parts.iter().map(seconds).max_by(f64::total_cmp)?;
    let pays = work.max(1.0) * (longest + PART) <= PAYS * best;
    (pays && parts.len() > 1).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_division_is_repeated_where_it_has_paid() {
        let tried = |whole, divided| Tried { whole, divided }.may_divide();
        assert!(tried(None, None) && tried(Some(1.0), None));
        assert!(!tried(None, Some(0.5)), "one device computes next");
        assert!(tried(Some(1.0), Some(0.6)));
        assert!(!tried(Some(1.0), Some(0.99)) && !tried(Some(1.0), Some(1.5)));
    }

    fn pace(units: f64) -> Option<Pace> {
        Some(Pace { units, part: 0.0 })
    }

    #[test]
    fn devices_get_units_in_proportion_to_their_speeds() {
        let parts = division(&[pace(3.0), None, pace(1.5), pace(3.0)], 1.0, 40);
        assert_eq!(parts, Some(vec![(0, 0..10), (2, 10..30), (3, 30..40)]));
    }

    #[test]
    fn all_units_are_given_whatever_the_speeds() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut divided = 0;
        for _ in 0..1000 {
            let one = |random: &mut fastrand::Rng| {
                random.bool().then(|| Pace {
                    units: random.f64(),
                    part: random.f64() * 0.2,
                })
            };
            let paces: Vec<_> = (0..random.usize(..5)).map(|_| one(&mut random)).collect();
            let units = random.u64(..70);
            let Some(parts) = division(&paces, 1.0, units) else {
                continue;
            };
            divided += 1;
            let mut end = 0;
            for (device, own) in parts {
                assert!(paces[device].is_some());
                assert!(own.start == end && own.end > end);
                end = own.end;
            }
            assert_eq!(end, units);
        }
        assert!(divided > 50, "{divided}");
    }

    #[test]
    fn a_division_that_gains_little_is_none() {
        // A tenth as fast: at best 0.91 of the time.
        assert_eq!(division(&[pace(1.0), pace(10.0)], 1.0, 64), None);
        // What all parts read is copied in half of the time.
        let copies = Some(Pace {
            units: 1.0,
            part: 0.7,
        });
        assert_eq!(division(&[pace(1.0), copies], 1.0, 64), None);
        // The launches take longer than computing.
        assert_eq!(division(&[pace(60e-6), pace(60e-6)], 1.0, 64), None);
        // A unit cannot be divided.
        assert_eq!(division(&[pace(1.0), pace(1.0)], 1.0, 1), None);
        assert!(division(&[pace(1.0), pace(1.0)], 1.0, 2).is_some());
    }

    #[test]
    fn devices_that_have_other_subtasks_share_none() {
        let both = [pace(1.0), pace(1.0)];
        assert_eq!(division(&both, 2.0, 64), None, "one each");
        // This one takes as long as ten others.
        assert!(division(&both, 1.4, 64).is_some());
        let three = [pace(1.0), pace(1.0), pace(1.0)];
        assert!(division(&three, 2.0, 64).is_some(), "two on three devices");
    }
}

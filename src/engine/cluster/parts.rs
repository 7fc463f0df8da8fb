//! Subtasks that several devices of a node compute together: a part is a kernel of the open
//! graph, with its own views and its own results.

use std::ops::Range;

use super::division::{Pace, division};
use super::error::ClusterError;
use super::subtasks::{Computing, EndedSubtask, OfChain, Running, Subtasks, Written};
use crate::codelet::{Cost, Name};
use crate::graph::Ended;
use crate::runtime::Runtime;
use crate::time::Nanos;
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
}

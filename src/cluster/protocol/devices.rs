//! A node's devices: which of them takes the next subtask of the node's queue.

use super::DeviceIndex;
use crate::cluster::info::NodeInfo;
use crate::cluster::task::TaskId;
use crate::spread::rate::{Mean, Rate};
use crate::time::Nanos;

/// A device, with what runs on it.
struct Device {
    works: bool,
    depth: usize,
    rate: Rate,
    /// The subtasks on it. Those of earlier tasks could not be stopped.
    running: Vec<Running>,
    /// When it began the subtask that ends next.
    since: Nanos,
}

/// A subtask on a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Running {
    pub task: TaskId,
    pub subtask: u64,
    /// How much work it is.
    weight: f64,
    /// Another node's result counts.
    pub cancelled: bool,
}

/// The devices of a node.
pub(super) struct Devices {
    devices: Vec<Device>,
}

impl Devices {
    /// The devices of a node. Where nothing is prefetched, each has one subtask at a time.
    pub fn new(info: &NodeInfo, prefetch: u32) -> Self {
        let devices = info.devices.iter().map(|device| Device {
            works: true,
            depth: if prefetch == 0 {
                1
            } else {
                device.depth.max(1) as usize
            },
            rate: Rate::new(device, Mean::default()),
            running: Vec::new(),
            since: 0,
        });
        Self {
            devices: devices.collect(),
        }
    }

    /// A task begins, of this mean.
    pub fn begin(&mut self, info: &NodeInfo, mean: Mean) {
        for (device, info) in self.devices.iter_mut().zip(&info.devices) {
            device.rate = Rate::new(info, mean);
        }
    }

    /// How many work.
    pub fn working(&self) -> usize {
        self.devices.iter().filter(|device| device.works).count()
    }

    fn free(&self, device: &Device, task: TaskId) -> bool {
        // What a device still computes for an earlier task fills it.
        let earlier = device.running.iter().any(|running| running.task != task);
        device.works && device.running.len() < device.depth && !earlier
    }

    /// How many subtasks the devices could begin now.
    pub fn free_slots(&self, task: TaskId) -> usize {
        let free = self.devices.iter().filter(|device| self.free(device, task));
        free.map(|device| device.depth - device.running.len()).sum()
    }

    /// The device that should take one of `waiting` subtasks now, which is of this weight: the
    /// fastest one with room, unless the others will have done all of them before it has done
    /// this one.
    pub fn next(&self, task: TaskId, (waiting, weight): (usize, f64), now: Nanos) -> Option<usize> {
        let free = (0..self.devices.len()).filter(|&d| self.free(&self.devices[d], task));
        let key = |&d: &usize| {
            let device = &self.devices[d];
            (self.ends(device, now) + self.seconds(device) * weight, d)
        };
        let first = free.min_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(a.cmp(b)))?;
        (!self.declines(first, (waiting, weight), now)).then_some(first)
    }

    fn seconds(&self, device: &Device) -> f64 {
        device.rate.seconds()
    }

    /// Seconds until what runs on a device has ended.
    fn ends(&self, device: &Device, now: Nanos) -> f64 {
        let seconds = self.seconds(device);
        let weight: f64 = device.running.iter().map(|running| running.weight).sum();
        let begun = match device.running.is_empty() {
            true => 0.0,
            false => now.saturating_sub(device.since) as f64 * 1e-9,
        };
        (seconds * weight - begun).max(0.0)
    }

    fn declines(&self, index: usize, (waiting, weight): (usize, f64), now: Nanos) -> bool {
        let device = &self.devices[index];
        let end = self.ends(device, now) + self.seconds(device) * weight;
        let others = self.devices.iter().enumerate();
        let others = others.filter(|(other, device)| *other != index && device.works);
        let done = others.map(|(_, other)| {
            // Those that wait are taken to be like this one.
            let seconds = self.seconds(other) * weight;
            let time = end - self.ends(other, now);
            // Just below, so that of two equal devices neither declines.
            if seconds > 0.0 {
                (time / seconds * (1.0 - 1e-9)).max(0.0) as usize
            } else {
                0
            }
        });
        done.sum::<usize>() >= waiting
    }

    /// A device begins a subtask of a weight.
    pub fn start(
        &mut self,
        device: usize,
        (task, subtask): (TaskId, u64),
        weight: f64,
        now: Nanos,
    ) {
        let device = &mut self.devices[device];
        if device.running.is_empty() {
            device.since = now;
        }
        device.running.push(Running {
            task,
            subtask,
            weight,
            cancelled: false,
        });
    }

    /// A device has ended a subtask, for which it or another one was chosen: which of them
    /// computes it is decided when it begins. `None` if none was.
    pub fn done(
        &mut self,
        device: DeviceIndex,
        subtask: (TaskId, u64),
        now: Nanos,
    ) -> Option<Running> {
        let own = self.devices.get(device.0 as usize)?;
        let is_it = |running: &Running| (running.task, running.subtask) == subtask;
        let which = match own.running.iter().any(is_it) {
            true => device.0 as usize,
            false => (self.devices.iter()).position(|other| other.running.iter().any(is_it))?,
        };
        let device = &mut self.devices[which];
        let place = device.running.iter().position(is_it)?;
        device.since = now;
        Some(device.running.remove(place))
    }

    /// Learns from a subtask that a device has ended.
    pub fn learn(&mut self, device: DeviceIndex, weight: f64, took: Nanos, now: Nanos) {
        self.devices[device.0 as usize].rate.done(weight, took, now);
    }

    /// Whether anything is on a device.
    pub fn computes(&self, device: DeviceIndex) -> bool {
        let device = self.devices.get(device.0 as usize);
        device.is_some_and(|device| !device.running.is_empty())
    }

    /// Whether a subtask of a task is on a device, wanted or not.
    pub fn runs(&self, task: TaskId, subtask: u64) -> bool {
        let running = self.devices.iter().flat_map(|device| &device.running);
        let mut running = running.filter(|running| running.task == task);
        running.any(|running| running.subtask == subtask)
    }

    /// The result of a subtask of a task is not wanted. The device that it is on.
    pub fn cancel(&mut self, task: TaskId, subtask: u64) -> Option<DeviceIndex> {
        for (index, device) in self.devices.iter_mut().enumerate() {
            let mut running = device.running.iter_mut();
            let found = running.find(|one| one.task == task && one.subtask == subtask);
            if let Some(found) = found {
                found.cancelled = true;
                return Some(DeviceIndex(index as u32));
            }
        }
        None
    }

    /// What runs of a task and is wanted.
    pub fn all_running(&self, task: TaskId) -> impl Iterator<Item = (usize, u64)> + '_ {
        let devices = self.devices.iter().enumerate();
        let all = devices.flat_map(|(d, device)| device.running.iter().map(move |r| (d, r)));
        let wanted = all.filter(move |(_, running)| running.task == task && !running.cancelled);
        wanted.map(|(device, running)| (device, running.subtask))
    }

    /// A device has failed. The result is what ran on it.
    pub fn lost(&mut self, device: DeviceIndex) -> Vec<Running> {
        let Some(device) = self.devices.get_mut(device.0 as usize) else {
            return Vec::new();
        };
        device.works = false;
        std::mem::take(&mut device.running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::info::DeviceInfo;
    use crate::codelet::Cost;

    const TASK: TaskId = TaskId(1);

    fn devices(flops: &[f64]) -> Devices {
        let device = |&flops: &f64| DeviceInfo {
            name: "device".into(),
            flops,
            memory_bandwidth: f64::INFINITY,
            link_bandwidth: f64::INFINITY,
            depth: 1,
        };
        let info = NodeInfo {
            name: "node".into(),
            devices: flops.iter().map(device).collect(),
        };
        let mut devices = Devices::new(&info, 1);
        let cost = Cost {
            flops: 1.0,
            bytes: 0.0,
        };
        devices.begin(&info, Mean { cost, copied: 0.0 });
        devices
    }

    #[test]
    fn a_slow_device_leaves_the_last_subtasks_to_the_fast_one() {
        // A second and ten of them.
        let mut devices = devices(&[0.1, 1.0]);
        assert_eq!(
            devices.next(TASK, (20, 1.0), 0),
            Some(1),
            "the fast one takes first"
        );
        devices.start(1, (TASK, 0), 1.0, 0);
        assert_eq!(
            devices.next(TASK, (19, 1.0), 0),
            Some(0),
            "in ten seconds it does nine"
        );
        assert_eq!(
            devices.next(TASK, (9, 1.0), 0),
            Some(0),
            "the nine are done when it ends"
        );
        assert_eq!(devices.next(TASK, (8, 1.0), 0), None);
    }

    #[test]
    fn equal_devices_take_all() {
        let mut devices = devices(&[1.0, 1.0]);
        devices.start(0, (TASK, 0), 1.0, 0);
        assert_eq!(devices.next(TASK, (1, 1.0), 0), Some(1));
        devices.start(1, (TASK, 1), 1.0, 0);
        assert_eq!(devices.next(TASK, (1, 1.0), 0), None, "both are full");
        assert!(devices.done(DeviceIndex(0), (TASK, 0), 5).is_some());
        assert_eq!(devices.done(DeviceIndex(0), (TASK, 0), 5), None);
    }

    #[test]
    fn the_end_of_an_earlier_subtask_is_not_that_of_one_with_its_number() {
        let mut devices = devices(&[1.0, 1.0]);
        devices.start(0, (TASK, 3), 1.0, 0);
        let next = TaskId(2);
        devices.start(1, (next, 3), 1.0, 1);
        let done = devices.done(DeviceIndex(1), (TASK, 3), 5);
        assert_eq!(done.map(|running| running.task), Some(TASK));
        assert!(devices.runs(next, 3));
    }
}

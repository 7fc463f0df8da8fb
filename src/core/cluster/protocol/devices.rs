//! A node's devices: which of them takes the next subtask of the node's queue.

use super::DeviceIndex;
use crate::cluster::info::NodeInfo;
use crate::cluster::task::TaskId;
use crate::spread::kinds::{Kinds, Rates};
use crate::time::Nanos;

/// A device, with what runs on it.
struct Device {
    works: bool,
    depth: usize,
    /// None before the first task.
    rates: Option<Rates>,
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
    /// Its kind, and how much work it is.
    work: (usize, f64),
    /// Another node's result counts.
    pub cancelled: bool,
}

/// Seconds in which a device computes a subtask of a kind and a weight.
fn seconds(device: &Device, (kind, weight): (usize, f64)) -> f64 {
    let rates = device.rates.as_ref();
    rates.map_or(0.0, |rates| rates.of(kind).seconds() * weight)
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
            rates: None,
            running: Vec::new(),
            since: 0,
        });
        Self {
            devices: devices.collect(),
        }
    }

    /// A task or a chain begins, with subtasks of these kinds.
    pub fn begin(&mut self, info: &NodeInfo, kinds: &Kinds) {
        for (device, info) in self.devices.iter_mut().zip(&info.devices) {
            device.rates = Some(Rates::new(info, kinds));
            // Of what still runs of earlier tasks only this much is of interest.
            for running in &mut device.running {
                running.work.0 = kinds.main();
            }
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

    /// The next subtask that a device should begin now, and that device, of those that are
    /// `ready`, in the order in which they should begin. Each goes to the device that would end
    /// it first after those before it, which may have no room now. Where all ready ones go to
    /// such devices, one that would also be given some of those that come `later` takes the last
    /// ready one. So a slow device leaves the last subtasks to fast ones.
    pub fn next(
        &self,
        task: TaskId,
        ready: impl Iterator<Item = (u64, (usize, f64))>,
        later: impl Iterator<Item = (usize, f64)>,
        now: Nanos,
    ) -> Option<(usize, u64)> {
        let working = self.devices.iter().enumerate();
        let working = working.filter(|(_, device)| device.works);
        let mut ends: Vec<(f64, bool, usize)> = working
            .map(|(index, device)| (self.ends(device, now), self.free(device, task), index))
            .collect();
        let mut give = |work: (usize, f64)| {
            let end = |&(end, is_free, index): &(f64, bool, usize)| {
                (end + seconds(&self.devices[index], work), !is_free)
            };
            let first = ends.iter_mut().min_by(|one, other| {
                let (one, other) = (end(one), end(other));
                one.0.total_cmp(&other.0).then(one.1.cmp(&other.1))
            })?;
            first.0 = end(first).0;
            first.1.then_some(first.2)
        };
        let mut last = None;
        for (subtask, work) in ready {
            if let Some(device) = give(work) {
                return Some((device, subtask));
            }
            last = Some(subtask);
        }
        let last = last?;
        let device = later.into_iter().find_map(give)?;
        Some((device, last))
    }

    /// Seconds until what runs on a device has ended.
    fn ends(&self, device: &Device, now: Nanos) -> f64 {
        let running = device.running.iter();
        let all: f64 = running.map(|running| seconds(device, running.work)).sum();
        let begun = match device.running.is_empty() {
            true => 0.0,
            false => now.saturating_sub(device.since) as f64 * 1e-9,
        };
        (all - begun).max(0.0)
    }

    /// A device begins a subtask.
    pub fn start(
        &mut self,
        device: usize,
        (task, subtask): (TaskId, u64),
        work: (usize, f64),
        now: Nanos,
    ) {
        let device = &mut self.devices[device];
        if device.running.is_empty() {
            device.since = now;
        }
        device.running.push(Running {
            task,
            subtask,
            work,
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
    pub fn learn(&mut self, device: DeviceIndex, work: (usize, f64), took: Nanos, now: Nanos) {
        if let Some(rates) = &mut self.devices[device.0 as usize].rates {
            rates.done(work, took, now);
        }
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
    use std::sync::Arc;

    use super::*;
    use crate::cluster::info::DeviceInfo;
    use crate::cluster::task::chain::Chain;
    use crate::cluster::task::listed::ListedTask;

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
        let chain = Arc::new(Chain::of(Arc::new(ListedTask::light(1))));
        let kinds = Kinds::of(chain, None, info.devices.iter());
        devices.begin(&info, &kinds);
        devices
    }

    /// The device that takes one of so many subtasks of weight 1, of which so many are ready.
    fn next(devices: &Devices, ready: u64, waiting: u64) -> Option<usize> {
        let ones = |range: std::ops::Range<u64>| range.map(|subtask| (subtask, (0, 1.0)));
        let later = ones(ready..waiting).map(|(_, work)| work);
        let next = devices.next(TASK, ones(0..ready), later, 0);
        next.map(|(device, _)| device)
    }

    #[test]
    fn a_slow_device_leaves_the_last_subtasks_to_the_fast_one() {
        // A second and ten of them.
        let mut devices = devices(&[0.1, 1.0]);
        assert_eq!(next(&devices, 20, 20), Some(1), "the fast one takes first");
        devices.start(1, (TASK, 0), (0, 1.0), 0);
        for ready in [1, 9, 19] {
            let device = next(&devices, ready, 19);
            assert_eq!(device, Some(0), "in ten seconds it does nine");
        }
        assert_eq!(
            next(&devices, 9, 9),
            Some(0),
            "the nine are done when it ends"
        );
        assert_eq!(next(&devices, 8, 8), None);
        assert_eq!(next(&devices, 0, 19), None, "nothing can begin");
    }

    #[test]
    fn what_others_wait_for_is_left_to_the_device_that_ends_it_first() {
        let mut devices = devices(&[0.1, 1.0]);
        devices.start(1, (TASK, 0), (0, 1.0), 0);
        let ready = (0..20).map(|subtask| (subtask, (0, if subtask == 0 { 5.0 } else { 1.0 })));
        // The fast one ends the heavy one after 6 s, and three others before 10 s.
        let next = devices.next(TASK, ready, std::iter::empty(), 0);
        assert_eq!(next, Some((0, 4)));
        let heavy = std::iter::once((0, (0, 5.0)));
        assert_eq!(devices.next(TASK, heavy, std::iter::empty(), 0), None);
    }

    #[test]
    fn equal_devices_take_all() {
        let mut devices = devices(&[1.0, 1.0]);
        devices.start(0, (TASK, 0), (0, 1.0), 0);
        assert_eq!(next(&devices, 1, 1), Some(1));
        devices.start(1, (TASK, 1), (0, 1.0), 0);
        assert_eq!(next(&devices, 1, 1), None, "both are full");
        assert!(devices.done(DeviceIndex(0), (TASK, 0), 5).is_some());
        assert_eq!(devices.done(DeviceIndex(0), (TASK, 0), 5), None);
    }

    #[test]
    fn the_end_of_an_earlier_subtask_is_not_that_of_one_with_its_number() {
        let mut devices = devices(&[1.0, 1.0]);
        devices.start(0, (TASK, 3), (0, 1.0), 0);
        let next = TaskId(2);
        devices.start(1, (next, 3), (0, 1.0), 1);
        let done = devices.done(DeviceIndex(1), (TASK, 3), 5);
        assert_eq!(done.map(|running| running.task), Some(TASK));
        assert!(devices.runs(next, 3));
    }
}

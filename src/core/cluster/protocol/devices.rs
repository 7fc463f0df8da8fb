//! A node's devices: the subtasks that have not begun, and which device takes the next one.

use std::collections::VecDeque;

use super::DeviceIndex;
use crate::cluster::info::NodeInfo;
use crate::cluster::task::TaskId;
use crate::spread::rate::{Kinds, Rates};
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

/// Subtasks that have not begun, by what is known of their data. Each part is in the order
/// in which subtasks were given, or in that of their numbers.
#[derive(Default)]
pub(super) struct Queue {
    /// Whether those of less numbers come first.
    by_number: bool,
    /// What they read was not asked for yet.
    unasked: VecDeque<u64>,
    /// All that they read is this node's.
    local: VecDeque<u64>,
    /// What they read comes from other nodes, or has come.
    fetched: VecDeque<u64>,
}

/// Adds a subtask at the end, or at its place by number.
fn add(part: &mut VecDeque<u64>, subtask: u64, by_number: bool) {
    let place = match by_number {
        true => part.partition_point(|other| *other < subtask),
        false => part.len(),
    };
    part.insert(place, subtask);
}

impl Queue {
    /// An empty queue. With `by_number`, subtasks of less numbers come first.
    pub fn new(by_number: bool) -> Self {
        Self {
            by_number,
            ..Self::default()
        }
    }

    fn parts(&self) -> [&VecDeque<u64>; 3] {
        [&self.fetched, &self.local, &self.unasked]
    }

    fn parts_mut(&mut self) -> [&mut VecDeque<u64>; 3] {
        [&mut self.fetched, &mut self.local, &mut self.unasked]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.parts().into_iter().flatten().copied()
    }

    /// How many need data of other nodes and were asked for.
    pub fn fetched(&self) -> usize {
        self.fetched.len()
    }

    /// Adds subtasks.
    pub fn extend(&mut self, subtasks: impl Iterator<Item = u64>) {
        for subtask in subtasks {
            add(&mut self.unasked, subtask, self.by_number);
        }
    }

    /// Adds a subtask that was begun, to be begun again before the others.
    pub fn again(&mut self, subtask: u64) {
        match self.by_number {
            true => add(&mut self.fetched, subtask, true),
            false => self.fetched.push_front(subtask),
        }
    }

    /// The next one whose data were not asked for.
    pub fn next_unasked(&self) -> Option<u64> {
        self.unasked.front().copied()
    }

    /// The data of the next one were asked for, if it `needs` any.
    pub fn set_asked(&mut self, needs: bool) {
        if let Some(subtask) = self.unasked.pop_front() {
            let part = match needs {
                true => &mut self.fetched,
                false => &mut self.local,
            };
            add(part, subtask, self.by_number);
        }
    }

    /// Those whose data were asked for, in the order in which they should begin: by number, or
    /// those that need data of others, so that others can be fetched, before those that keep
    /// nothing waiting.
    pub fn asked(&self) -> impl Iterator<Item = u64> + '_ {
        let mut fetched = self.fetched.iter().copied().peekable();
        let mut local = self.local.iter().copied().peekable();
        std::iter::from_fn(move || {
            let is_local = match (fetched.peek(), local.peek()) {
                (Some(fetched), Some(local)) => self.by_number && local < fetched,
                (fetched, _) => fetched.is_none(),
            };
            if is_local {
                local.next()
            } else {
                fetched.next()
            }
        })
    }

    /// Those whose data were not asked for, in order.
    pub fn unasked(&self) -> impl Iterator<Item = u64> + '_ {
        self.unasked.iter().copied()
    }

    /// The data of a subtask were asked for before others', if it `needs` any.
    pub fn asked_early(&mut self, subtask: u64, needs: bool) {
        if let Some(place) = self.unasked.iter().position(|&other| other == subtask) {
            self.unasked.remove(place);
            self.unasked.push_front(subtask);
            self.set_asked(needs);
        }
    }

    /// Removes a subtask. The result is whether it was there.
    pub fn remove(&mut self, subtask: u64) -> bool {
        self.parts_mut().into_iter().any(|part| {
            let place = part.iter().position(|&other| other == subtask);
            place.and_then(|place| part.remove(place)).is_some()
        })
    }

    /// Removes all.
    pub fn take(&mut self) -> Vec<u64> {
        let parts = self.parts_mut().into_iter();
        parts.flat_map(|part| part.drain(..)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cluster::info::DeviceInfo;
    use crate::cluster::task::chain::Chain;
    use crate::cluster::task::fixtures::ListedTask;

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
            memory: 1 << 34,
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

    /// Subtasks 1 and 3 need data of other nodes, 0 and 2 none, and 4 and 5 were not asked.
    fn queue() -> Queue {
        let mut queue = Queue::default();
        queue.extend(0..6);
        for subtask in 0..4 {
            assert_eq!(queue.next_unasked(), Some(subtask));
            queue.set_asked(subtask % 2 == 1);
        }
        queue
    }

    #[test]
    fn what_was_fetched_begins_first_where_it_has_come() {
        let queue = queue();
        let asked: Vec<u64> = queue.asked().collect();
        assert_eq!(asked, [1, 3, 0, 2], "4 and 5 were not asked for");
        assert_eq!((queue.len(), queue.fetched()), (6, 2));
    }

    #[test]
    fn by_number_the_least_comes_first() {
        let mut queue = Queue::new(true);
        queue.extend([5, 2, 9].into_iter());
        assert_eq!(queue.next_unasked(), Some(2));
        queue.set_asked(false);
        queue.set_asked(true);
        assert!(queue.asked().eq([2, 5]));
        queue.again(1);
        queue.extend([0].into_iter());
        assert!(queue.asked().eq([1, 2, 5]));
        assert_eq!(queue.take(), [1, 5, 2, 0, 9]);
    }

    #[test]
    fn what_begins_again_is_the_first() {
        let mut queue = queue();
        assert!(queue.remove(0));
        queue.again(0);
        assert_eq!(queue.asked().next(), Some(0));
        assert_eq!(queue.len(), 6);
    }

    #[test]
    fn each_part_gives_its_subtasks_back() {
        let mut queue = queue();
        for subtask in [1, 2, 4] {
            assert!(queue.remove(subtask), "{subtask}");
            assert!(!queue.remove(subtask), "{subtask} was removed");
        }
        assert_eq!((queue.len(), queue.fetched()), (3, 1));
        assert_eq!(queue.next_unasked(), Some(5));
        assert_eq!(queue.take(), [3, 0, 5]);
        assert_eq!((queue.len(), queue.next_unasked()), (0, None));
    }
}

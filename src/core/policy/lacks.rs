//! How many inputs of each task every device lacks, kept up to date: what policies have
//! in common that count what a load makes possible.
//!
//! A datum that a device starts or ceases to hold changes the tasks that read it; a task
//! that is taken changes what its inputs are needed for. [`Lacking`] tells a policy of the
//! former.

use std::collections::VecDeque;

use super::Problem;
use super::problem::Adjacency;

/// A task that lacks so many inputs never runs.
pub(super) const UNABLE: u32 = 1 << 31;

/// What devices hold, the available tasks (ready, and in no device's plan or buffer), and
/// how much these lack.
pub(super) struct Lacks {
    pub holdings: Holdings,
    pub inputs: Adjacency,
    pub readers: Adjacency,
    pub devices: usize,
    pub available: Vec<bool>,
    /// By task: whether it is in some device's plan or buffer, or has ended.
    pub taken: Vec<bool>,
    /// By datum: its readers that no device has taken.
    pub unprocessed: Vec<u32>,
    /// By task and device: how many inputs it lacks.
    counts: Vec<u32>,
    /// By device: the tasks that came to lack nothing. Some are no longer free, and some
    /// are there twice.
    freed: Vec<VecDeque<u32>>,
}

impl Lacks {
    /// Without an available task.
    pub fn new(problem: &Problem) -> Self {
        let (tasks, devices) = (problem.tasks.len(), problem.devices.len());
        Self {
            holdings: Holdings::new(problem),
            inputs: Adjacency::inputs(problem),
            readers: Adjacency::readers(problem),
            devices,
            available: vec![false; tasks],
            taken: vec![false; tasks],
            unprocessed: vec![0; problem.data.len()],
            counts: vec![0; tasks * devices],
            freed: vec![VecDeque::new(); devices],
        }
    }

    /// From now on no task is available. Those of which `taken` says so have ended; lost
    /// devices run nothing.
    pub fn reset(&mut self, problem: &Problem, lost: &[bool], taken: impl Fn(usize) -> bool) {
        self.available.fill(false);
        self.unprocessed.fill(0);
        self.freed.iter_mut().for_each(VecDeque::clear);
        for task in 0..problem.tasks.len() {
            self.taken[task] = taken(task);
            for datum in self.inputs.of(task).iter().filter(|_| !self.taken[task]) {
                self.unprocessed[*datum as usize] += 1;
            }
            for (device, lost) in lost.iter().enumerate() {
                let mut count = self.missing(task, device).count() as u32;
                if *lost || !problem.able(task, device) {
                    count += UNABLE;
                }
                self.counts[task * self.devices + device] = count;
            }
        }
    }

    /// How many inputs a task lacks on a device.
    #[inline]
    pub fn count(&self, task: usize, device: usize) -> u32 {
        self.counts[task * self.devices + device]
    }

    /// A reader of a datum has one input more that the device holds, or one less; returns
    /// how many it lacked before, and lacks now.
    #[inline]
    pub fn change(&mut self, task: usize, device: usize, held: bool) -> (u32, u32) {
        let count = &mut self.counts[task * self.devices + device];
        let before = *count;
        *count = if held { before - 1 } else { before + 1 };
        (before, *count)
    }

    /// Those of a task's inputs that a device does not hold.
    #[inline]
    pub fn missing(&self, task: usize, device: usize) -> impl Iterator<Item = u32> {
        let missing = self.inputs.of(task).iter().copied();
        missing.filter(move |datum| !self.holdings.holds(device, *datum as usize))
    }

    /// Notes a task that came to lack nothing on a device.
    #[inline]
    pub fn frees(&mut self, task: usize, device: usize) {
        // A task without inputs is free everywhere, and so is every task on a device
        // that computes in host memory. No device reserves them.
        if !self.holdings.in_host(device) && !self.inputs.of(task).is_empty() {
            self.freed[device].push_back(task as u32);
        }
    }

    /// The first available task that came to lack nothing on a device. Who asks takes it.
    #[inline]
    pub fn pop_freed(&mut self, device: usize) -> Option<usize> {
        loop {
            let task = self.freed[device].pop_front()? as usize;
            if self.available[task] && self.count(task, device) == 0 {
                return Some(task);
            }
        }
    }
}

/// Who follows what devices hold.
pub(super) trait Lacking {
    fn lacks(&mut self) -> &mut Lacks;

    /// A device started or ceased to hold a datum.
    fn moves(&mut self, device: usize, datum: usize);

    /// A datum is in a device's memory, or no longer.
    fn arrived(&mut self, device: usize, datum: usize) {
        if self.lacks().holdings.arrived(device, datum) {
            self.moves(device, datum);
        }
    }

    fn evicted(&mut self, device: usize, datum: usize) {
        if self.lacks().holdings.evicted(device, datum) {
            self.moves(device, datum);
        }
    }

    /// A device will load all inputs of a task, or need not any longer.
    fn reserve(&mut self, task: usize, device: usize) {
        for index in 0..self.lacks().inputs.of(task).len() {
            let datum = self.lacks().inputs.of(task)[index] as usize;
            if self.lacks().holdings.reserve(device, datum) {
                self.moves(device, datum);
            }
        }
    }

    fn release(&mut self, task: usize, device: usize) {
        for index in 0..self.lacks().inputs.of(task).len() {
            let datum = self.lacks().inputs.of(task)[index] as usize;
            if self.lacks().holdings.release(device, datum) {
                self.moves(device, datum);
            }
        }
    }
}

/// By device and datum: whether it is in the device's memory, and how many tasks have
/// reserved it. A device holds a datum that is there or reserved: a task that was given
/// to a device makes the engine load it, so no later task has to pay for it.
///
/// A device that computes in host memory holds all data.
#[derive(Clone, Debug)]
pub(super) struct Holdings {
    data: usize,
    host: Vec<bool>,
    present: Vec<bool>,
    reserved: Vec<u32>,
}

impl Holdings {
    pub fn new(problem: &Problem) -> Self {
        let data = problem.data.len();
        let size = data * problem.devices.len();
        let in_host = problem.devices.iter().map(|device| device.memory.is_none());
        Self {
            data,
            host: in_host.collect(),
            present: vec![false; size],
            reserved: vec![0; size],
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.present.fill(false);
        self.reserved.fill(0);
    }

    /// Forgets what is reserved, and what a lost device had.
    pub fn lose(&mut self, device: usize) {
        self.reserved.fill(0);
        self.present[device * self.data..][..self.data].fill(false);
    }

    pub fn in_host(&self, device: usize) -> bool {
        self.host[device]
    }

    pub fn holds(&self, device: usize, datum: usize) -> bool {
        let index = device * self.data + datum;
        self.host[device] || self.present[index] || self.reserved[index] > 0
    }

    /// Bytes of a task's inputs that a device does not hold.
    pub fn absent_bytes(&self, problem: &Problem, task: usize, device: usize) -> u64 {
        let inputs = problem.tasks[task].inputs.iter();
        let absent = inputs.filter(|datum| !self.holds(device, **datum));
        absent.map(|datum| problem.data[*datum].bytes).sum()
    }

    /// The datum is there. Each of these says whether the device now holds it and did
    /// not before, or the reverse.
    pub fn arrived(&mut self, device: usize, datum: usize) -> bool {
        self.changes(device, datum, |present, _| *present = true)
    }

    pub fn evicted(&mut self, device: usize, datum: usize) -> bool {
        self.changes(device, datum, |present, _| *present = false)
    }

    pub fn reserve(&mut self, device: usize, datum: usize) -> bool {
        self.changes(device, datum, |_, reserved| *reserved += 1)
    }

    pub fn release(&mut self, device: usize, datum: usize) -> bool {
        self.changes(device, datum, |_, reserved| *reserved -= 1)
    }

    fn changes(
        &mut self,
        device: usize,
        datum: usize,
        change: impl FnOnce(&mut bool, &mut u32),
    ) -> bool {
        let before = self.holds(device, datum);
        let index = device * self.data + datum;
        change(&mut self.present[index], &mut self.reserved[index]);
        self.holds(device, datum) != before
    }
}

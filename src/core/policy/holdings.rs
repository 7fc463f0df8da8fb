//! What each device's memory holds, or is certain to get.

use super::Problem;

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

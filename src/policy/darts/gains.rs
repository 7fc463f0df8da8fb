//! What a device gains by loading a datum: n(D) of Algorithm 5, kept up to date.
//!
//! The paper computes n(D) of all data at each decision. Here each task knows how many
//! inputs every device lacks, and which one if it is only one. A datum that a device
//! starts or ceases to hold changes the tasks that read it; a task that is taken changes
//! its inputs. A decision then reads the greatest n(D) off a tournament tree. A datum
//! costs as many steps as it has readers each time it comes or goes.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::policy::Problem;
use crate::policy::adjacency::Adjacency;
use crate::policy::holdings::Holdings;
use crate::policy::tournament::Tournament;

/// A task that lacks so many inputs never runs.
const UNABLE: u32 = 1 << 31;

/// What devices hold, the available tasks (ready, and in no device's plan or buffer),
/// and the gains.
pub struct Gains {
    pub holdings: Holdings,
    pub inputs: Adjacency,
    pub readers: Adjacency,
    devices: usize,
    /// Whether n(D) is ranked only as zero or not (OPTI, section V.F).
    any: bool,
    available: Vec<bool>,
    /// By task: whether it is in some device's plan or buffer, or has ended.
    taken: Vec<bool>,
    /// By task and device.
    lacks: Vec<Lack>,
    /// By datum: its readers that no device has taken.
    pub unprocessed: Vec<u32>,
    /// By device: n(D), and how many tasks need D and another datum (3inputs, section
    /// V.E), if that is asked for.
    singles: Vec<Gain>,
    pairs: Vec<Gain>,
    /// By device: the tasks that came to lack nothing. Some are no longer free, and some
    /// are there twice.
    freed: Vec<VecDeque<u32>>,
}

/// The inputs of a task that a device does not hold.
#[derive(Clone, Copy, Debug, Default)]
struct Lack {
    count: u32,
    /// The exclusive or of their numbers: the number, if there is one.
    combined: u32,
}

/// By datum: how many available tasks its load helps.
#[derive(Clone)]
struct Gain {
    tasks: Vec<u32>,
    ranked: Tournament,
}

impl Gain {
    fn new(data: usize) -> Self {
        Self {
            tasks: vec![0; data],
            ranked: Tournament::new(data),
        }
    }

    fn clear(&mut self) {
        self.tasks.fill(0);
        self.ranked.clear();
    }
}

impl Gains {
    /// The gains of no available task. `any` and `pairs` are OPTI and 3inputs.
    pub fn new(problem: &Problem, any: bool, pairs: bool) -> Self {
        let (tasks, data) = (problem.tasks.len(), problem.data.len());
        let devices = problem.devices.len();
        Self {
            holdings: Holdings::new(problem),
            inputs: Adjacency::inputs(problem),
            readers: Adjacency::readers(problem),
            devices,
            any,
            available: vec![false; tasks],
            taken: vec![false; tasks],
            lacks: vec![Lack::default(); tasks * devices],
            unprocessed: vec![0; data],
            singles: vec![Gain::new(data); devices],
            pairs: vec![Gain::new(data); if pairs { devices } else { 0 }],
            freed: vec![VecDeque::new(); devices],
        }
    }

    /// From now on no task is available. Those of which `taken` says so have ended;
    /// lost devices run nothing.
    pub fn reset(&mut self, problem: &Problem, lost: &[bool], taken: impl Fn(usize) -> bool) {
        self.available.fill(false);
        self.unprocessed.fill(0);
        self.singles.iter_mut().for_each(Gain::clear);
        self.pairs.iter_mut().for_each(Gain::clear);
        self.freed.iter_mut().for_each(VecDeque::clear);
        for task in 0..problem.tasks.len() {
            let inputs = self.inputs.of(task);
            self.taken[task] = taken(task);
            for datum in inputs.iter().filter(|_| !self.taken[task]) {
                self.unprocessed[*datum as usize] += 1;
            }
            for (device, lost) in lost.iter().enumerate() {
                let mut lack = Lack::default();
                for datum in missing(inputs, &self.holdings, device) {
                    lack.count += 1;
                    lack.combined ^= datum;
                }
                if *lost || !problem.able(task, device) {
                    lack.count += UNABLE;
                }
                self.lacks[task * self.devices + device] = lack;
            }
        }
    }

    /// A task becomes available.
    pub fn add(&mut self, task: usize) {
        self.available[task] = true;
        if std::mem::take(&mut self.taken[task]) {
            self.weigh(task, 1);
        }
        for device in 0..self.devices {
            let lack = self.lacks[task * self.devices + device];
            match lack.count {
                0 => self.frees(task, device),
                1 => self.single(device, lack.combined, 1),
                2 => self.pair(task, device, 1),
                _ => {}
            }
        }
    }

    /// A device takes an available task.
    pub fn take(&mut self, task: usize) {
        for device in 0..self.devices {
            let lack = self.lacks[task * self.devices + device];
            match lack.count {
                1 => self.single(device, lack.combined, -1),
                2 => self.pair(task, device, -1),
                _ => {}
            }
        }
        self.available[task] = false;
        self.taken[task] = true;
        self.weigh(task, -1);
    }

    /// A datum is in a device's memory, or no longer.
    pub fn arrived(&mut self, device: usize, datum: usize) {
        if self.holdings.arrived(device, datum) {
            self.held(device, datum);
        }
    }

    pub fn evicted(&mut self, device: usize, datum: usize) {
        if self.holdings.evicted(device, datum) {
            self.dropped(device, datum);
        }
    }

    /// A device will load all inputs of a task, or need not any longer.
    pub fn reserve(&mut self, task: usize, device: usize) {
        for index in 0..self.inputs.of(task).len() {
            let datum = self.inputs.of(task)[index] as usize;
            if self.holdings.reserve(device, datum) {
                self.held(device, datum);
            }
        }
    }

    pub fn release(&mut self, task: usize, device: usize) {
        for index in 0..self.inputs.of(task).len() {
            let datum = self.inputs.of(task)[index] as usize;
            if self.holdings.release(device, datum) {
                self.dropped(device, datum);
            }
        }
    }

    /// The first available task that came to lack nothing on a device. Who asks takes it.
    pub fn pop_freed(&mut self, device: usize) -> Option<usize> {
        loop {
            let task = self.freed[device].pop_front()? as usize;
            if self.available[task] && self.lacking(task, device) == 0 {
                return Some(task);
            }
        }
    }

    /// A task that lacks one datum D, such that the load of D frees the most tasks
    /// (lines 6 to 9 of Algorithm 5). Among equals D has the most unprocessed readers,
    /// and is random among those.
    pub fn best(&mut self, device: usize, random: &mut fastrand::Rng) -> Option<usize> {
        let datum = self.singles[device].ranked.random(random)?;
        let mut readers = self.readers.of(datum).iter().map(|task| *task as usize);
        readers.find(|task| self.available[*task] && self.lacking(*task, device) == 1)
    }

    /// A random task that lacks two data, D and another, and reads one that the device
    /// holds, such that the most such tasks read D (3inputs, section V.E).
    pub fn best_of_pairs(&mut self, device: usize, random: &mut fastrand::Rng) -> Option<usize> {
        let datum = self.pairs.get_mut(device)?.ranked.random(random)?;
        let readers = self.readers.of(datum).iter().map(|task| *task as usize);
        let readers = readers.filter(|task| self.available[*task]);
        let nearly = readers.filter(|task| self.lacking(*task, device) == 2);
        let nearly = nearly.filter(|task| self.inputs.of(*task).len() > 2);
        random.choice(nearly.collect::<Vec<_>>())
    }

    fn lacking(&self, task: usize, device: usize) -> u32 {
        self.lacks[task * self.devices + device].count
    }

    fn held(&mut self, device: usize, datum: usize) {
        for index in 0..self.readers.of(datum).len() {
            let task = self.readers.of(datum)[index] as usize;
            let lack = &mut self.lacks[task * self.devices + device];
            lack.count -= 1;
            lack.combined ^= datum as u32;
            let lack = *lack;
            if !self.available[task] {
                continue;
            }
            match lack.count {
                0 => {
                    self.single(device, datum as u32, -1);
                    self.frees(task, device);
                }
                1 => {
                    self.single(device, lack.combined, 1);
                    if self.inputs.of(task).len() > 2 {
                        self.help(device, [lack.combined, datum as u32], -1);
                    }
                }
                2 => self.pair(task, device, 1),
                _ => {}
            }
        }
    }

    fn dropped(&mut self, device: usize, datum: usize) {
        for index in 0..self.readers.of(datum).len() {
            let task = self.readers.of(datum)[index] as usize;
            let lack = &mut self.lacks[task * self.devices + device];
            let before = *lack;
            lack.count += 1;
            lack.combined ^= datum as u32;
            if !self.available[task] {
                continue;
            }
            match before.count {
                0 => self.single(device, datum as u32, 1),
                1 => {
                    self.single(device, before.combined, -1);
                    self.pair(task, device, 1);
                }
                2 if !self.pairs.is_empty() => {
                    let all = missing(self.inputs.of(task), &self.holdings, device);
                    let others: Vec<u32> = all.filter(|other| *other != datum as u32).collect();
                    self.help(device, others, -1);
                }
                _ => {}
            }
        }
    }

    fn frees(&mut self, task: usize, device: usize) {
        // A task without inputs is free everywhere, and so is every task on a device
        // that computes in host memory. No device reserves them.
        if !self.holdings.in_host(device) && !self.inputs.of(task).is_empty() {
            self.freed[device].push_back(task as u32);
        }
    }

    /// n(D) on a device changes by so much.
    fn single(&mut self, device: usize, datum: u32, by: i32) {
        let datum = datum as usize;
        let gain = &mut self.singles[device];
        gain.tasks[datum] = gain.tasks[datum].wrapping_add_signed(by);
        let key = key(self.any, gain.tasks[datum], self.unprocessed[datum]);
        gain.ranked.set(datum, key);
    }

    /// A task that lacks two data on a device counts for both, if the device holds a
    /// third, or no longer.
    fn pair(&mut self, task: usize, device: usize, by: i32) {
        if !self.pairs.is_empty() && self.inputs.of(task).len() > 2 {
            let missing: Vec<u32> = missing(self.inputs.of(task), &self.holdings, device).collect();
            self.help(device, missing, by);
        }
    }

    fn help(&mut self, device: usize, data: impl IntoIterator<Item = u32>, by: i32) {
        let Some(gain) = self.pairs.get_mut(device) else {
            return;
        };
        for datum in data.into_iter().map(|datum| datum as usize) {
            gain.tasks[datum] = gain.tasks[datum].wrapping_add_signed(by);
            let key = key(false, gain.tasks[datum], self.unprocessed[datum]);
            gain.ranked.set(datum, key);
        }
    }

    /// The number of unprocessed readers of a task's inputs changes by so much.
    fn weigh(&mut self, task: usize, by: i32) {
        for datum in self.inputs.of(task).iter().map(|datum| *datum as usize) {
            let unprocessed = &mut self.unprocessed[datum];
            *unprocessed = unprocessed.wrapping_add_signed(by);
            let singles = self.singles.iter_mut().map(|gain| (gain, self.any));
            let pairs = self.pairs.iter_mut().map(|gain| (gain, false));
            for (gain, any) in singles
                .chain(pairs)
                .filter(|(gain, _)| gain.tasks[datum] > 0)
            {
                let key = key(any, gain.tasks[datum], *unprocessed);
                gain.ranked.set(datum, key);
            }
        }
    }
}

/// Those of the inputs that a device does not hold.
fn missing(inputs: &[u32], holdings: &Holdings, device: usize) -> impl Iterator<Item = u32> {
    let missing = inputs.iter().copied();
    missing.filter(move |datum| !holdings.holds(device, *datum as usize))
}

/// The rank of a datum: by its gain, then by its unprocessed readers.
fn key(any: bool, tasks: u32, unprocessed: u32) -> u64 {
    match (tasks, any) {
        (0, _) => 0,
        (_, true) => 1,
        _ => u64::from(tasks) << 32 | u64::from(unprocessed),
    }
}

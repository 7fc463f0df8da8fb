//! What a device gains by loading a datum: n(D) of Algorithm 5, kept up to date.
//!
//! The paper computes n(D) of all data at each decision. Here each task knows how many
//! inputs every device lacks, and which one if it is only one. A datum that a device
//! starts or ceases to hold changes the tasks that read it; a task that is taken changes
//! its inputs. A decision then reads the greatest n(D) off a tournament tree. A datum
//! costs as many steps as it has readers each time it comes or goes.

#[cfg(test)]
mod tests;

use crate::policy::Problem;
use crate::policy::lacks::{Lacking, Lacks};
use crate::policy::tournament::Tournament;

/// What tasks lack, and the gains.
pub struct Gains {
    pub lacks: Lacks,
    /// Whether n(D) is ranked only as zero or not (OPTI, section V.F).
    any: bool,
    /// By task and device: the exclusive or of the numbers of what it lacks. That is the
    /// number, if there is one.
    combined: Vec<u32>,
    /// By device: n(D), and how many tasks need D and another datum (3inputs, section
    /// V.E), if that is asked for.
    singles: Vec<Gain>,
    pairs: Vec<Gain>,
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
            lacks: Lacks::new(problem),
            any,
            combined: vec![0; tasks * devices],
            singles: vec![Gain::new(data); devices],
            pairs: vec![Gain::new(data); if pairs { devices } else { 0 }],
        }
    }

    /// From now on no task is available. Those of which `taken` says so have ended;
    /// lost devices run nothing.
    pub fn reset(&mut self, problem: &Problem, lost: &[bool], taken: impl Fn(usize) -> bool) {
        self.lacks.reset(problem, lost, taken);
        self.singles.iter_mut().for_each(Gain::clear);
        self.pairs.iter_mut().for_each(Gain::clear);
        for task in 0..problem.tasks.len() {
            for device in 0..self.lacks.devices {
                let missing = self.lacks.missing(task, device);
                let combined = missing.fold(0, |combined, datum| combined ^ datum);
                self.combined[task * self.lacks.devices + device] = combined;
            }
        }
    }

    /// A task becomes available.
    pub fn add(&mut self, task: usize) {
        self.lacks.available[task] = true;
        if std::mem::take(&mut self.lacks.taken[task]) {
            self.weigh(task, 1);
        }
        for device in 0..self.lacks.devices {
            match self.lacks.count(task, device) {
                0 => self.lacks.frees(task, device),
                1 => self.single(device, self.combined(task, device), 1),
                2 => self.pair(task, device, 1),
                _ => {}
            }
        }
    }

    /// A device takes an available task.
    pub fn take(&mut self, task: usize) {
        for device in 0..self.lacks.devices {
            match self.lacks.count(task, device) {
                1 => self.single(device, self.combined(task, device), -1),
                2 => self.pair(task, device, -1),
                _ => {}
            }
        }
        self.lacks.available[task] = false;
        self.lacks.taken[task] = true;
        self.weigh(task, -1);
    }

    /// A task that lacks one datum D, such that the load of D frees the most tasks
    /// (lines 6 to 9 of Algorithm 5). Among equals D has the most unprocessed readers,
    /// and is random among those.
    pub fn best(&mut self, device: usize, random: &mut fastrand::Rng) -> Option<usize> {
        let datum = self.singles[device].ranked.random(random)?;
        let mut readers = self
            .lacks
            .readers
            .of(datum)
            .iter()
            .map(|task| *task as usize);
        readers.find(|task| self.lacks.available[*task] && self.lacks.count(*task, device) == 1)
    }

    /// A random task that lacks two data, D and another, and reads one that the device
    /// holds, such that the most such tasks read D (3inputs, section V.E).
    pub fn best_of_pairs(&mut self, device: usize, random: &mut fastrand::Rng) -> Option<usize> {
        let datum = self.pairs.get_mut(device)?.ranked.random(random)?;
        let readers = self
            .lacks
            .readers
            .of(datum)
            .iter()
            .map(|task| *task as usize);
        let readers = readers.filter(|task| self.lacks.available[*task]);
        let nearly = readers.filter(|task| self.lacks.count(*task, device) == 2);
        let nearly = nearly.filter(|task| self.lacks.inputs.of(*task).len() > 2);
        random.choice(nearly.collect::<Vec<_>>())
    }

    fn combined(&self, task: usize, device: usize) -> u32 {
        self.combined[task * self.lacks.devices + device]
    }

    /// An available task lacks one datum less on a device.
    fn held(&mut self, task: usize, device: usize, datum: u32, after: u32) {
        match after {
            0 => {
                self.single(device, datum, -1);
                self.lacks.frees(task, device);
            }
            1 => {
                let other = self.combined(task, device);
                self.single(device, other, 1);
                if self.lacks.inputs.of(task).len() > 2 {
                    self.help(device, [other, datum], -1);
                }
            }
            2 => self.pair(task, device, 1),
            _ => {}
        }
    }

    /// An available task lacks one datum more on a device.
    fn dropped(&mut self, task: usize, device: usize, datum: u32, before: u32) {
        match before {
            0 => self.single(device, datum, 1),
            1 => {
                self.single(device, self.combined(task, device) ^ datum, -1);
                self.pair(task, device, 1);
            }
            2 if !self.pairs.is_empty() => {
                let all = self.lacks.missing(task, device);
                let others: Vec<u32> = all.filter(|other| *other != datum).collect();
                self.help(device, others, -1);
            }
            _ => {}
        }
    }

    /// n(D) on a device changes by so much.
    fn single(&mut self, device: usize, datum: u32, by: i32) {
        let datum = datum as usize;
        let gain = &mut self.singles[device];
        gain.tasks[datum] = gain.tasks[datum].wrapping_add_signed(by);
        let key = key(self.any, gain.tasks[datum], self.lacks.unprocessed[datum]);
        gain.ranked.set(datum, key);
    }

    /// A task that lacks two data on a device counts for both, if the device holds a
    /// third, or no longer.
    fn pair(&mut self, task: usize, device: usize, by: i32) {
        if !self.pairs.is_empty() && self.lacks.inputs.of(task).len() > 2 {
            let missing: Vec<u32> = self.lacks.missing(task, device).collect();
            self.help(device, missing, by);
        }
    }

    fn help(&mut self, device: usize, data: impl IntoIterator<Item = u32>, by: i32) {
        let Some(gain) = self.pairs.get_mut(device) else {
            return;
        };
        for datum in data.into_iter().map(|datum| datum as usize) {
            gain.tasks[datum] = gain.tasks[datum].wrapping_add_signed(by);
            let key = key(false, gain.tasks[datum], self.lacks.unprocessed[datum]);
            gain.ranked.set(datum, key);
        }
    }

    /// The number of unprocessed readers of a task's inputs changes by so much.
    fn weigh(&mut self, task: usize, by: i32) {
        for datum in self
            .lacks
            .inputs
            .of(task)
            .iter()
            .map(|datum| *datum as usize)
        {
            let unprocessed = &mut self.lacks.unprocessed[datum];
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

impl Lacking for Gains {
    fn lacks(&mut self) -> &mut Lacks {
        &mut self.lacks
    }

    fn moves(&mut self, device: usize, datum: usize) {
        let held = self.lacks.holdings.holds(device, datum);
        for index in 0..self.lacks.readers.of(datum).len() {
            let task = self.lacks.readers.of(datum)[index] as usize;
            let (before, after) = self.lacks.change(task, device, held);
            self.combined[task * self.lacks.devices + device] ^= datum as u32;
            match (self.lacks.available[task], held) {
                (false, _) => {}
                (true, true) => self.held(task, device, datum as u32, after),
                (true, false) => self.dropped(task, device, datum as u32, before),
            }
        }
    }
}

/// The rank of a datum: by its gain, then by its unprocessed readers.
fn key(any: bool, tasks: u32, unprocessed: u32) -> u64 {
    match (tasks, any) {
        (0, _) => 0,
        (_, true) => 1,
        _ => u64::from(tasks) << 32 | u64::from(unprocessed),
    }
}

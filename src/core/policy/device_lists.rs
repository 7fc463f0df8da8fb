//! A list of tasks for each device, in Ready order (Gonthier, Marchal and Thibault,
//! IPDPS 2022, Algorithm 2), with task stealing (section IV.B).
//!
//! Ready gives a device the first task of its list that needs the fewest bytes loaded.
//! StarPU scans the list for each one. Here the bytes that each task lacks are kept up
//! to date as data come and go, and a tournament tree over the positions has the first
//! least one, so a list of 100,000 tasks costs no more than a short one.

use super::adjacency::Adjacency;
use super::holdings::Holdings;
use super::luf::{Eviction, Luf};
use super::tournament::Tournament;
use super::{Finished, Problem};

/// What the policies with lists have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListOptions {
    /// How many tasks a device has at once; at least 1.
    pub window: usize,
    /// The paper's DMDAR, hMETIS+R and mHFP use LRU.
    pub eviction: Eviction,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self {
            window: super::WINDOW,
            eviction: Eviction::Lru,
        }
    }
}

pub(super) struct DeviceLists {
    inputs: Adjacency,
    readers: Adjacency,
    pub holdings: Holdings,
    luf: Option<Luf>,
    /// By task: the device in whose list it is, its position there, and the bytes that
    /// it lacks.
    owner: Vec<Option<usize>>,
    position: Vec<usize>,
    absent: Vec<u64>,
    /// By position: the task. All lists number positions alike, so that a stolen task
    /// keeps its own.
    task_at: Vec<usize>,
    /// By device: over the positions, the fewer bytes the greater the key.
    order: Vec<Tournament>,
    count: Vec<usize>,
}

impl DeviceLists {
    pub fn new(problem: &Problem, eviction: Eviction) -> Self {
        let (tasks, devices) = (problem.tasks.len(), problem.devices.len());
        Self {
            inputs: Adjacency::inputs(problem),
            readers: Adjacency::readers(problem),
            holdings: Holdings::new(problem),
            luf: (eviction == Eviction::Luf).then(|| Luf::new(problem)),
            owner: vec![None; tasks],
            position: vec![0; tasks],
            absent: vec![0; tasks],
            task_at: vec![0; tasks],
            order: vec![Tournament::new(tasks); devices],
            count: vec![0; devices],
        }
    }

    /// Empties the lists and forgets all data.
    pub fn clear(&mut self) {
        self.holdings.clear();
        self.luf.iter_mut().for_each(Luf::clear);
        self.empty();
    }

    /// Empties the lists. A lost device has no data.
    pub fn lose(&mut self, device: usize) {
        self.holdings.lose(device);
        self.luf.iter_mut().for_each(|luf| luf.lose(device));
        self.empty();
    }

    fn empty(&mut self) {
        self.owner.fill(None);
        self.order.iter_mut().for_each(Tournament::clear);
        self.count.fill(0);
    }

    /// Tasks in a device's list.
    pub fn count(&self, device: usize) -> usize {
        self.count[device]
    }

    /// Puts a task into a device's list, at a position below the number of tasks that
    /// no other task has.
    pub fn push(&mut self, problem: &Problem, device: usize, task: usize, position: usize) {
        self.owner[task] = Some(device);
        self.position[task] = position;
        self.task_at[position] = task;
        self.absent[task] = self.holdings.absent_bytes(problem, task, device);
        self.order[device].set(position, key(self.absent[task]));
        self.count[device] += 1;
        if let Some(luf) = &mut self.luf {
            luf.plan(device, self.inputs.of(task));
        }
    }

    fn remove(&mut self, device: usize, task: usize) {
        self.owner[task] = None;
        self.order[device].set(self.position[task], 0);
        self.count[device] -= 1;
        if let Some(luf) = &mut self.luf {
            luf.withdraw(device, self.inputs.of(task));
        }
    }

    /// Takes the first task of a device's list that lacks the fewest bytes, and gives
    /// it to the device.
    pub fn pop(&mut self, problem: &Problem, device: usize) -> Option<usize> {
        let task = self.task_at[self.order[device].first()?];
        self.remove(device, task);
        let inputs = &problem.tasks[task].inputs;
        for datum in inputs {
            if self.holdings.reserve(device, *datum) {
                self.reweigh(problem, device, *datum);
            }
        }
        if let Some(luf) = &mut self.luf {
            luf.give(device, self.inputs.of(task));
        }
        Some(task)
    }

    /// Moves half of the tasks of the longest list to the list of `thief`, from its
    /// tail, as far as the thief can run them.
    pub fn steal(&mut self, problem: &Problem, thief: usize) {
        let others = (0..self.count.len()).filter(|device| *device != thief);
        let Some(owner) = others.max_by_key(|device| (self.count[*device], usize::MAX - device))
        else {
            return;
        };
        let mut left_out = Vec::new();
        let mut left = self.count[owner] / 2;
        while left > 0 {
            let Some(position) = self.order[owner].last() else {
                break;
            };
            let task = self.task_at[position];
            if problem.able(task, thief) {
                self.remove(owner, task);
                self.push(problem, thief, task, position);
                left -= 1;
            } else {
                left_out.push((position, self.order[owner].get(position)));
                self.order[owner].set(position, 0);
            }
        }
        for (position, key) in left_out {
            self.order[owner].set(position, key);
        }
    }

    pub fn finished(&mut self, problem: &Problem, finished: &Finished) {
        let device = finished.device;
        let inputs = &problem.tasks[finished.component].inputs;
        for datum in inputs {
            if self.holdings.release(device, *datum) {
                self.reweigh(problem, device, *datum);
            }
        }
        if let Some(luf) = &mut self.luf {
            luf.finish(device, self.inputs.of(finished.component));
        }
    }

    pub fn arrived(&mut self, problem: &Problem, device: usize, datum: usize) {
        if self.holdings.arrived(device, datum) {
            self.reweigh(problem, device, datum);
        }
        self.luf
            .iter_mut()
            .for_each(|luf| luf.arrived(device, datum));
    }

    pub fn evicted(&mut self, problem: &Problem, device: usize, datum: usize) {
        if self.holdings.evicted(device, datum) {
            self.reweigh(problem, device, datum);
        }
        self.luf
            .iter_mut()
            .for_each(|luf| luf.evicted(device, datum));
    }

    pub fn victim(&mut self, device: usize, evictable: &dyn Fn(usize) -> bool) -> Option<usize> {
        self.luf.as_mut()?.victim(device, evictable)
    }

    /// A device holds a datum now, or no longer: the tasks in its list that read it
    /// lack less, or more.
    fn reweigh(&mut self, problem: &Problem, device: usize, datum: usize) {
        let bytes = problem.data[datum].bytes;
        let held = self.holdings.holds(device, datum);
        for task in self.readers.of(datum).iter().map(|task| *task as usize) {
            if self.owner[task] == Some(device) {
                let absent = &mut self.absent[task];
                *absent = if held {
                    *absent - bytes
                } else {
                    *absent + bytes
                };
                self.order[device].set(self.position[task], key(*absent));
            }
        }
    }
}

/// The key of a task in its list: above 0, and greater for fewer bytes.
fn key(absent: u64) -> u64 {
    u64::MAX - absent
}

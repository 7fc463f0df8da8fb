//! Adaptive: shares that are learned from layers place the components of the next
//! layer, or of the next run.
//!
//! The components of one level are a layer. The first layer is divided by estimates,
//! such that every useful device is measured. Each later one is divided such that all
//! devices are expected to end together, by their times of the layers before, as DAWL
//! divides steps. Components are few and whole, so the search is for the numbers of
//! them with the earliest expected end, and a device may have none.
//!
//! Devices slow each other down through the host's cores and memory, so the time of
//! the busiest device alone does not follow from its time beside others. If it may be
//! near the best, all components run on it once.

mod divide;

use std::collections::{BTreeMap, BTreeSet};

use super::learned_times::LearnedTimes;
use super::ready_queue::ReadyQueue;
use super::{Finished, Policy, Problem};
use crate::time::Nanos;

/// The part of a layer's time from which on copies count. Data that stay on the device
/// slow only the first run.
const COPY_FRACTION: f64 = 0.1;

/// The policy.
pub struct Adaptive {
    problem: Problem,
    levels: Vec<Vec<usize>>,
    /// Components without a device, and by device those that it gets.
    unplaced: ReadyQueue,
    ready: Vec<ReadyQueue>,
    learned: Vec<LearnedTimes>,
    /// By device: the seconds of its part of the last layer, over those estimated.
    off: Vec<Option<f64>>,
    lost: Vec<bool>,
    /// By component: its device, once its layer has been divided in this run.
    placed: Vec<Option<usize>>,
    /// By component: its expected device, once the level before was divided. Data that
    /// only this device needs stay there; if the component goes elsewhere, the engine
    /// fetches them.
    expected: Vec<Option<usize>>,
    /// By level.
    layers: Vec<LayerProgress>,
    /// By number of components: how many each device had of the last such layer.
    last: BTreeMap<usize, Vec<usize>>,
    /// Numbers of components for which the busiest device alone was considered.
    alone: BTreeSet<usize>,
}

/// A layer in progress.
#[derive(Clone, Debug)]
struct LayerProgress {
    left: usize,
    began: Nanos,
    /// By device.
    done: Vec<DevicePart>,
    /// Whether a device was lost meanwhile, so that the times cannot be used.
    unusable: bool,
}

/// A device's part of a layer.
#[derive(Clone, Copy, Debug, Default)]
struct DevicePart {
    /// The work of its components that have ended, their estimated seconds, and the last end.
    amount: f64,
    estimate: f64,
    ended: Nanos,
    /// Bytes that were written to it meanwhile.
    written: u64,
}

impl Adaptive {
    pub fn new(problem: Problem) -> Self {
        let devices = problem.devices.len();
        let mut made = Self {
            levels: problem.levels(),
            placed: vec![None; problem.tasks.len()],
            expected: vec![None; problem.tasks.len()],
            problem,
            unplaced: ReadyQueue::default(),
            ready: vec![ReadyQueue::default(); devices],
            learned: vec![LearnedTimes::default(); devices],
            off: vec![None; devices],
            lost: vec![false; devices],
            layers: Vec::new(),
            last: BTreeMap::new(),
            alone: BTreeSet::new(),
        };
        made.begin();
        made
    }

    /// How many components each device had of the last layer with so many.
    pub fn division(&self, components: usize) -> Option<&[usize]> {
        self.last.get(&components).map(Vec::as_slice)
    }

    fn clear_ready(&mut self) {
        self.unplaced.clear();
        self.ready.iter_mut().for_each(ReadyQueue::clear);
    }

    /// Other devices are there than before: earlier divisions say nothing of later ones,
    /// and the present layer's times tell nothing.
    fn divide_anew(&mut self) {
        self.clear_ready();
        self.last.clear();
        self.alone.clear();
        self.expected.fill(None);
        for layer in &mut self.layers {
            layer.unusable = true;
        }
    }

    /// Divides a layer: each component gets a device. The next layer is divided
    /// tentatively, which decides what data stay on their devices.
    fn divide(&mut self, level: usize) {
        let mut parts = self.parts(level, true);
        let count = self.levels[level].len();
        if !self.alone.contains(&count) && self.knows_all(&parts) {
            self.alone.insert(count);
            parts = self.single_device_instead(level, &parts).unwrap_or(parts);
        }
        for (device, part) in parts.iter().enumerate() {
            for component in part {
                self.placed[*component] = Some(device);
            }
        }
        let division: Vec<usize> = parts.iter().map(Vec::len).collect();
        self.last.insert(count, division);
        if level + 1 < self.levels.len() {
            for (device, part) in self.parts(level + 1, false).iter().enumerate() {
                for component in part {
                    self.expected[*component] = Some(device);
                }
            }
        }
    }
}

impl Policy for Adaptive {
    fn name(&self) -> &'static str {
        "adaptive"
    }

    fn may_run(&self, component: usize, device: usize) -> bool {
        self.problem.suits(component, device)
    }

    fn certain(&self, component: usize) -> Option<usize> {
        let device = self.placed[component].or(self.expected[component]);
        device.filter(|device| !self.lost[*device])
    }

    fn begin(&mut self) {
        self.clear_ready();
        self.placed.fill(None);
        self.expected.fill(None);
        let devices = self.lost.len();
        let layer = |components: &Vec<usize>| LayerProgress {
            left: components.len(),
            began: Nanos::MAX,
            done: vec![DevicePart::default(); devices],
            unusable: false,
        };
        self.layers = self.levels.iter().map(layer).collect();
    }

    fn ready(&mut self, component: usize, now: Nanos) {
        let level = self.problem.tasks[component].level;
        let layer = &mut self.layers[level];
        layer.began = layer.began.min(now);
        let queue = match self.placed[component] {
            Some(device) => &mut self.ready[device],
            None => &mut self.unplaced,
        };
        queue.push(&self.problem, component);
    }

    fn next(&mut self, device: usize, _now: Nanos) -> Option<usize> {
        if let Some(component) = self.unplaced.peek() {
            self.divide(self.problem.tasks[component].level);
        }
        while let Some(component) = self.unplaced.pop_if(|c| self.placed[c].is_some()) {
            if let Some(device) = self.placed[component] {
                self.ready[device].push(&self.problem, component);
            }
        }
        self.ready[device].pop()
    }

    fn finished(&mut self, finished: &Finished) {
        let task = &self.problem.tasks[finished.component];
        let layer = &mut self.layers[task.level];
        let done = &mut layer.done[finished.device];
        done.amount += task.weight;
        done.estimate += task.seconds[finished.device].unwrap_or(0.0);
        done.ended = done.ended.max(finished.ended);
        done.written += finished.written;
        layer.left = layer.left.saturating_sub(1);
        if layer.left > 0 || layer.unusable {
            return;
        }
        for (device, done) in layer.done.iter().enumerate() {
            let seconds = done.ended.saturating_sub(layer.began) as f64 / 1e9;
            if done.estimate > 0.0 {
                self.off[device] = Some(seconds / done.estimate);
            }
            let copying = self.problem.devices[device].transfer(done.written);
            self.learned[device].learn(done.amount, seconds, copying > seconds * COPY_FRACTION);
        }
    }

    fn lost(&mut self, device: usize) {
        self.lost[device] = true;
        self.divide_anew();
        for placed in &mut self.placed {
            if *placed == Some(device) {
                *placed = None;
            }
        }
    }

    fn returned(&mut self, device: usize) {
        self.lost[device] = false;
        self.divide_anew();
    }
}

#[cfg(test)]
mod tests;

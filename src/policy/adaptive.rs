//! Adaptive: shares learned from layers place the components of the next layer,
//! or of the next run.
//!
//! Components of one level are a layer. A layer is divided among the devices as
//! DAWL divides a step: the first by what is expected of each device, so that
//! every device that is worth anything shows its speed; each later one such that
//! all are expected to end together, by what the devices took for the layers
//! before. Unlike a step's units components are few and whole, so what is
//! searched for is the whole number of them with the least expected end, and no
//! device need have any.
//!
//! Devices slow each other down, by the host's cores and its memory. What one
//! takes alone does not follow from what it took beside others, so where it may be
//! near the best it is tried once.

mod divide;

use std::collections::{BTreeMap, BTreeSet};

use super::learned::Learned;
use super::ready::Ready;
use super::{Assignment, Finished, Policy, Problem};
use crate::time::Nanos;

/// The part of a layer's time that its copies to a device must take for them to
/// count: what is written once and stays slows the first run alone.
const LADEN: f64 = 0.1;

/// The policy.
pub struct Adaptive {
    problem: Problem,
    levels: Vec<Vec<usize>>,
    ready: Ready,
    learned: Vec<Learned>,
    lost: Vec<bool>,
    /// By device: components that it has.
    running: Vec<usize>,
    /// By component: its device, once its layer has been divided in this run.
    placed: Vec<Option<usize>>,
    /// By component: where it would go by what is known, once the level before
    /// its own was divided. What only one device needs so stays there; should it
    /// go elsewhere after all, the engine fetches what it needs.
    foreseen: Vec<Option<usize>>,
    /// By level: what is left of it, and what the devices did.
    layers: Vec<Layer>,
    /// By a layer's number of components: how many each device had of the last
    /// such layer.
    last: BTreeMap<usize, Vec<usize>>,
    /// Numbers of components for which it has been looked at what the busiest
    /// device would take alone.
    alone: BTreeSet<usize>,
}

/// A layer on its way.
#[derive(Clone, Debug)]
struct Layer {
    left: usize,
    began: Nanos,
    /// By device: what it has done of it.
    done: Vec<Done>,
    /// Whether a device was lost meanwhile: it says nothing then.
    spoilt: bool,
}

/// A device's part of a layer.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    /// The work that it ended, and when it ended the last of it.
    amount: f64,
    ended: Nanos,
    /// Bytes that were written to it meanwhile.
    written: u64,
}

impl Adaptive {
    pub fn new(problem: Problem) -> Self {
        let devices = problem.spots.len();
        let mut made = Self {
            levels: problem.levels(),
            placed: vec![None; problem.tasks.len()],
            foreseen: vec![None; problem.tasks.len()],
            problem,
            ready: Ready::default(),
            learned: vec![Learned::default(); devices],
            lost: vec![false; devices],
            running: vec![0; devices],
            layers: Vec::new(),
            last: BTreeMap::new(),
            alone: BTreeSet::new(),
        };
        made.begin();
        made
    }

    /// How many components each device had of the last layer of so many.
    pub fn division(&self, components: usize) -> Option<&[usize]> {
        self.last.get(&components).map(Vec::as_slice)
    }

    /// Divides a layer: a device for each of its components. And foresees how the
    /// next one will be, since that says what of this one's results stays.
    fn divide(&mut self, level: usize) {
        let mut parts = self.parts(level, true);
        let count = self.levels[level].len();
        if !self.alone.contains(&count) && self.knows_all(&parts) {
            self.alone.insert(count);
            parts = self.alone_instead(level, &parts).unwrap_or(parts);
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
                    self.foreseen[*component] = Some(device);
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
        let device = self.placed[component].or(self.foreseen[component]);
        device.filter(|device| !self.lost[*device])
    }

    fn begin(&mut self) {
        self.ready.clear();
        self.running.fill(0);
        self.placed.fill(None);
        self.foreseen.fill(None);
        let devices = self.lost.len();
        let layer = |components: &Vec<usize>| Layer {
            left: components.len(),
            began: Nanos::MAX,
            done: vec![Done::default(); devices],
            spoilt: false,
        };
        self.layers = self.levels.iter().map(layer).collect();
    }

    fn ready(&mut self, component: usize, now: Nanos) {
        let level = self.problem.tasks[component].level;
        let layer = &mut self.layers[level];
        layer.began = layer.began.min(now);
        self.ready.push(&self.problem, component);
    }

    fn next(&mut self, _now: Nanos) -> Option<Assignment> {
        let first = self.ready.iter().find(|c| self.placed[*c].is_none());
        if let Some(component) = first {
            self.divide(self.problem.tasks[component].level);
        }
        let placed = &self.placed;
        let taken = self
            .ready
            .spread(&self.running, |component| placed[component]);
        let (component, device) = taken?;
        self.running[device] += 1;
        Some(Assignment { component, device })
    }

    fn finished(&mut self, finished: &Finished) {
        let running = &mut self.running[finished.device];
        *running = running.saturating_sub(1);
        let task = &self.problem.tasks[finished.component];
        let layer = &mut self.layers[task.level];
        let done = &mut layer.done[finished.device];
        done.amount += task.weight;
        done.ended = done.ended.max(finished.ended);
        done.written += finished.written;
        layer.left = layer.left.saturating_sub(1);
        if layer.left > 0 || layer.spoilt {
            return;
        }
        for (device, done) in layer.done.iter().enumerate() {
            let seconds = done.ended.saturating_sub(layer.began) as f64 / 1e9;
            let copying = self.problem.spots[device].transfer(done.written);
            self.learned[device].learn(done.amount, seconds, copying > seconds * LADEN);
        }
    }

    fn lost(&mut self, device: usize) {
        self.lost[device] = true;
        self.ready.clear();
        self.running.fill(0);
        self.last.clear();
        self.alone.clear();
        self.foreseen.fill(None);
        for layer in &mut self.layers {
            layer.spoilt = true;
        }
        for placed in &mut self.placed {
            if *placed == Some(device) {
                *placed = None;
            }
        }
    }
}

#[cfg(test)]
mod tests;

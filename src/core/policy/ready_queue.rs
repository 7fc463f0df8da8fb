//! The components and tasks that are ready and belong to no device: by rank, or for random choice.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Problem;

/// Ready components: the highest bottom-level rank first, and among equals the
/// first by number.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadyQueue(BinaryHeap<(i64, Reverse<usize>)>);

/// A number that orders ranks as `f64::total_cmp` does.
fn key(rank: f64) -> i64 {
    let bits = rank.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

impl ReadyQueue {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn push(&mut self, problem: &Problem, component: usize) {
        let rank = key(problem.tasks[component].rank);
        self.0.push((rank, Reverse(component)));
    }

    /// The first component.
    pub fn peek(&self) -> Option<usize> {
        self.0.peek().map(|(_, component)| component.0)
    }

    /// Takes the first component.
    pub fn pop(&mut self) -> Option<usize> {
        self.0.pop().map(|(_, component)| component.0)
    }

    /// Takes the first component that suits.
    pub fn pop_if(&mut self, suits: impl Fn(usize) -> bool) -> Option<usize> {
        let mut skipped = Vec::new();
        let found = std::iter::from_fn(|| self.0.pop()).find(|ranked| {
            let found = suits(ranked.1.0);
            if !found {
                skipped.push(*ranked);
            }
            found
        });
        self.0.extend(skipped);
        found.map(|(_, component)| component.0)
    }
}

/// A set of tasks, in classes of tasks that the same devices can run. A device's random
/// task therefore needs no search, however few tasks it can run.
#[derive(Clone, Debug)]
pub struct Pool {
    classes: Vec<Class>,
    /// By task: its class, and its place there.
    places: Vec<(u32, u32)>,
}

#[derive(Clone, Debug)]
struct Class {
    /// By device.
    able: Vec<bool>,
    tasks: Vec<u32>,
}

impl Pool {
    /// An empty set.
    pub fn new(problem: &Problem) -> Self {
        let mut classes: Vec<Class> = Vec::new();
        let places = problem.tasks.iter().map(|task| {
            let able = task.seconds.iter().map(Option::is_some);
            let able: Vec<bool> = able.collect();
            let known = classes.iter().position(|class| class.able == able);
            let class = known.unwrap_or_else(|| {
                let tasks = Vec::new();
                classes.push(Class { able, tasks });
                classes.len() - 1
            });
            (class as u32, 0)
        });
        Self {
            places: places.collect(),
            classes,
        }
    }

    pub fn clear(&mut self) {
        self.classes
            .iter_mut()
            .for_each(|class| class.tasks.clear());
    }

    pub fn add(&mut self, task: usize) {
        let (class, place) = &mut self.places[task];
        let tasks = &mut self.classes[*class as usize].tasks;
        *place = tasks.len() as u32;
        tasks.push(task as u32);
    }

    pub fn remove(&mut self, task: usize) {
        let (class, place) = self.places[task];
        let tasks = &mut self.classes[class as usize].tasks;
        tasks.swap_remove(place as usize);
        if let Some(moved) = tasks.get(place as usize) {
            self.places[*moved as usize].1 = place;
        }
    }

    /// A random task that the device can run.
    pub fn random(&self, device: usize, random: &mut fastrand::Rng) -> Option<usize> {
        let classes = self.classes.iter().filter(|class| class.able[device]);
        let count: usize = classes.clone().map(|class| class.tasks.len()).sum();
        if count == 0 {
            return None;
        }
        let mut index = random.usize(..count);
        for class in classes {
            match class.tasks.get(index) {
                Some(task) => return Some(*task as usize),
                None => index -= class.tasks.len(),
            }
        }
        None
    }
}

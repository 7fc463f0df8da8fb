//! The tasks that are ready and belong to no device, for random choice.

use super::Problem;

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

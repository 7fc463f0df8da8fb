//! The tasks that are ready and belong to no device, for random choice.

use crate::policy::Problem;

/// A set of tasks, in classes of tasks that the same devices can run. A device's random
/// task therefore needs no search, however few tasks it can run.
#[derive(Clone, Debug)]
pub struct Pool {
    classes: Vec<Class>,
    /// By task: its class, and its place there.
    class: Vec<usize>,
    place: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Class {
    /// By device.
    able: Vec<bool>,
    tasks: Vec<usize>,
}

impl Pool {
    /// An empty set.
    pub fn new(problem: &Problem) -> Self {
        let mut classes: Vec<Class> = Vec::new();
        let class = problem.tasks.iter().map(|task| {
            let able = task.seconds.iter().map(Option::is_some);
            let able: Vec<bool> = able.collect();
            let known = classes.iter().position(|class| class.able == able);
            known.unwrap_or_else(|| {
                let tasks = Vec::new();
                classes.push(Class { able, tasks });
                classes.len() - 1
            })
        });
        Self {
            class: class.collect(),
            place: vec![0; problem.tasks.len()],
            classes,
        }
    }

    pub fn clear(&mut self) {
        self.classes
            .iter_mut()
            .for_each(|class| class.tasks.clear());
    }

    pub fn add(&mut self, task: usize) {
        let tasks = &mut self.classes[self.class[task]].tasks;
        self.place[task] = tasks.len();
        tasks.push(task);
    }

    pub fn remove(&mut self, task: usize) {
        let tasks = &mut self.classes[self.class[task]].tasks;
        tasks.swap_remove(self.place[task]);
        if let Some(moved) = tasks.get(self.place[task]) {
            self.place[*moved] = self.place[task];
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
                Some(task) => return Some(*task),
                None => index -= class.tasks.len(),
            }
        }
        None
    }
}

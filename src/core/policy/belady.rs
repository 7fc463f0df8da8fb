//! Belady: devices compute given orders, and evict what they use furthest in the future
//! (Belady, "A study of replacement algorithms for a virtual-storage computer", IBM
//! Systems Journal 1966). With data of one size and one task at a time the loads are
//! the fewest that these orders allow, so the policy is a reference for others.

use std::collections::BTreeSet;

use super::{Finished, Policy, Problem};
use crate::time::Nanos;

/// The policy. A device gets the first task of its order that is ready.
pub struct Belady {
    problem: Problem,
    window: usize,
    orders: Vec<Vec<usize>>,
    /// By task: its device and its place in the order.
    places: Vec<(usize, usize)>,
    /// By device and datum: the places of the tasks that use it and have not ended.
    uses: Vec<Vec<BTreeSet<usize>>>,
    /// By device: the data in its memory.
    present: Vec<BTreeSet<usize>>,
    /// By device: the places of the tasks that are ready.
    ready: Vec<BTreeSet<usize>>,
    lost: Vec<bool>,
}

impl Belady {
    /// The policy that gives each device the tasks of its order, `window` at once.
    /// When a device is lost, the first one that can run a task has it at the end.
    pub fn new(problem: Problem, orders: Vec<Vec<usize>>, window: usize) -> Self {
        let devices = problem.devices.len();
        let mut belady = Self {
            window,
            orders,
            places: vec![(0, 0); problem.tasks.len()],
            uses: Vec::new(),
            present: vec![BTreeSet::new(); devices],
            ready: vec![BTreeSet::new(); devices],
            lost: vec![false; devices],
            problem,
        };
        belady.number();
        belady
    }

    fn number(&mut self) {
        self.ready.iter_mut().for_each(BTreeSet::clear);
        self.uses = vec![vec![BTreeSet::new(); self.problem.data.len()]; self.orders.len()];
        for (device, order) in self.orders.iter().enumerate() {
            for (place, task) in order.iter().enumerate() {
                self.places[*task] = (device, place);
                for datum in self.problem.tasks[*task].data() {
                    self.uses[device][datum].insert(place);
                }
            }
        }
    }
}

impl Policy for Belady {
    fn name(&self) -> &'static str {
        "belady"
    }

    fn may_run(&self, component: usize, device: usize) -> bool {
        self.problem.able(component, device)
    }

    fn window(&self) -> Option<usize> {
        Some(self.window)
    }

    fn begin(&mut self) {
        self.present.iter_mut().for_each(BTreeSet::clear);
        self.number();
    }

    fn ready(&mut self, component: usize, _now: Nanos) {
        let (device, place) = self.places[component];
        self.ready[device].insert(place);
    }

    fn next(&mut self, device: usize, _now: Nanos) -> Option<usize> {
        let place = self.ready[device].pop_first()?;
        Some(self.orders[device][place])
    }

    fn finished(&mut self, finished: &Finished) {
        let (device, place) = self.places[finished.component];
        for datum in self.problem.tasks[finished.component].data() {
            self.uses[device][datum].remove(&place);
        }
    }

    fn lost(&mut self, device: usize) {
        self.lost[device] = true;
        for task in std::mem::take(&mut self.orders[device]) {
            let mut others = (0..self.lost.len()).filter(|other| !self.lost[*other]);
            if let Some(other) = others.find(|other| self.problem.able(task, *other)) {
                self.orders[other].push(task);
            }
        }
        self.present[device].clear();
        self.number();
    }

    /// The others keep its tasks, since their orders are given.
    fn returned(&mut self, device: usize) {
        self.lost[device] = false;
        self.ready.iter_mut().for_each(BTreeSet::clear);
    }

    fn arrived(&mut self, device: usize, datum: usize) {
        self.present[device].insert(datum);
    }

    fn evicted(&mut self, device: usize, datum: usize) {
        self.present[device].remove(&datum);
    }

    fn victim(&mut self, device: usize, evictable: &dyn Fn(usize) -> bool) -> Option<usize> {
        let next = |datum: &usize| self.uses[device][*datum].first().copied();
        let present = self.present[device].iter().copied();
        present
            .filter(|datum| evictable(*datum))
            .max_by_key(|datum| next(datum).unwrap_or(usize::MAX))
    }
}

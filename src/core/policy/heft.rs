//! HEFT: the ready component of the highest bottom-level rank goes to the device with
//! the earliest finishing time (PySchedCL, experiment 3; Topcuoglu et al.,
//! "Performance-effective and low-complexity task scheduling for heterogeneous
//! computing", TPDS 2002).

use std::collections::VecDeque;

use super::ready_queue::ReadyQueue;
use super::{Finished, Policy, Problem};
use crate::time::Nanos;

/// The policy. The finishing time of a component on a device is when the device has
/// finished its earlier components, plus the copies that the component needs there,
/// plus the seconds of the component.
pub struct Heft {
    problem: Problem,
    ready: ReadyQueue,
    /// By device: when it will be free, in seconds of the clock, and its components,
    /// of which the last ones still wait to be asked for.
    free: Vec<f64>,
    running: Vec<Vec<usize>>,
    waiting: Vec<VecDeque<usize>>,
    lost: Vec<bool>,
    /// By device and datum: whether it is in the device's memory.
    present: Vec<Vec<bool>>,
}

impl Heft {
    pub fn new(problem: Problem) -> Self {
        let devices = problem.devices.len();
        Self {
            present: vec![vec![false; problem.data.len()]; devices],
            problem,
            ready: ReadyQueue::default(),
            free: vec![0.0; devices],
            running: vec![Vec::new(); devices],
            waiting: vec![VecDeque::new(); devices],
            lost: vec![false; devices],
        }
    }

    /// Seconds of copies before a component can begin on a device. Data of other
    /// devices are in host memory when the component that makes them has ended.
    fn copies(&self, component: usize, device: usize) -> f64 {
        let inputs = self.problem.tasks[component].inputs.iter();
        let absent = inputs.filter(|datum| !self.present[device][**datum]);
        let bytes = absent.map(|datum| self.problem.data[*datum].bytes).sum();
        self.problem.devices[device].transfer(bytes)
    }

    /// Nothing runs, and what is ready will be reported again.
    fn forget_placements(&mut self) {
        self.ready.clear();
        self.running.iter_mut().for_each(Vec::clear);
        self.waiting.iter_mut().for_each(VecDeque::clear);
        self.free.fill(0.0);
    }

    /// Gives every ready component to a device.
    fn place(&mut self, now: Nanos) {
        while let Some(component) = self.ready.pop() {
            let finish = |d| Some((d, self.finish(component, d, now as f64 / 1e9)?));
            let all = (0..self.free.len()).filter_map(finish);
            let Some((device, finish)) = all.min_by(|one, other| one.1.total_cmp(&other.1)) else {
                continue;
            };
            self.free[device] = finish;
            self.running[device].push(component);
            self.waiting[device].push_back(component);
            for datum in self.problem.tasks[component].inputs.iter() {
                self.present[device][*datum] = true;
            }
        }
    }

    /// The finishing time of a component on a device; `None` if it cannot run there.
    fn finish(&self, component: usize, device: usize, now: f64) -> Option<f64> {
        if self.lost[device] {
            return None;
        }
        let seconds = self.problem.tasks[component].seconds[device]?;
        Some(self.free[device].max(now) + self.copies(component, device) + seconds)
    }
}

impl Policy for Heft {
    fn name(&self) -> &'static str {
        "heft"
    }

    fn may_run(&self, component: usize, device: usize) -> bool {
        self.problem.able(component, device)
    }

    fn begin(&mut self) {
        self.forget_placements();
        self.present.iter_mut().for_each(|data| data.fill(false));
    }

    fn ready(&mut self, component: usize, _now: Nanos) {
        self.ready.push(&self.problem, component);
    }

    fn next(&mut self, device: usize, now: Nanos) -> Option<usize> {
        self.place(now);
        self.waiting[device].pop_front()
    }

    fn arrived(&mut self, device: usize, datum: usize) {
        self.present[device][datum] = true;
    }

    fn evicted(&mut self, device: usize, datum: usize) {
        self.present[device][datum] = false;
    }

    fn finished(&mut self, finished: &Finished) {
        let device = finished.device;
        let running = &mut self.running[device];
        running.retain(|component| *component != finished.component);
        // The measured end replaces the estimate.
        let left: f64 = running
            .iter()
            .filter_map(|c| self.problem.tasks[*c].seconds[device])
            .sum();
        self.free[device] = finished.ended as f64 / 1e9 + left;
    }

    fn changed(&mut self, device: usize, lost: bool) {
        self.lost[device] = lost;
        self.present[device].fill(false);
        self.forget_placements();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Datum;
    use crate::policy::fixtures::{layers, run};

    #[test]
    fn components_go_where_they_are_finished_first() {
        let problem = layers(1, 8, [3.0, 1.0]);
        let levels = run(&mut Heft::new(problem.clone()), &problem, |d, _| {
            [3.0, 1.0][d]
        });
        assert_eq!(levels, [(6.0, vec![2, 6])]);
        // A CPU that takes longer than the GPU for all gets nothing.
        let problem = layers(1, 8, [30.0, 1.0]);
        let levels = run(&mut Heft::new(problem.clone()), &problem, |d, _| {
            [30.0, 1.0][d]
        });
        assert_eq!(levels, [(8.0, vec![0, 8])]);
    }

    /// The device that gets component 0 of one that reads so many bytes.
    fn place(bytes: u64) -> Option<usize> {
        let mut problem = layers(1, 1, [3.0, 1.0]);
        problem.data.push(Datum { bytes });
        problem.tasks[0].inputs.push(0);
        let mut heft = Heft::new(problem);
        heft.ready(0, 0);
        (0..2).find(|device| heft.next(*device, 0).is_some())
    }

    #[test]
    fn copies_count() {
        assert_eq!(place(1_000_000_000), Some(1), "1 s and 1 s of copies");
        assert_eq!(place(3_000_000_000), Some(0), "1 s and 3 s of copies");
    }

    #[test]
    fn the_highest_rank_goes_first() {
        let mut problem = layers(1, 3, [9.0, 1.0]);
        problem.tasks[1].rank = 9.0;
        let mut heft = Heft::new(problem);
        (0..3).for_each(|component| heft.ready(component, 0));
        let order: Vec<_> = std::iter::from_fn(|| heft.next(1, 0)).collect();
        assert_eq!(order, [1, 0, 2]);
    }
}

//! HEFT: the ready component of the highest bottom-level rank goes to the device with
//! the earliest finishing time (PySchedCL, experiment 3; Topcuoglu et al.,
//! "Performance-effective and low-complexity task scheduling for heterogeneous
//! computing", TPDS 2002).

use super::ready_queue::ReadyQueue;
use super::{Assignment, Finished, Policy, Problem};
use crate::time::Nanos;

/// The policy. The finishing time of a component on a device is when the device has
/// finished its earlier components, plus the copies that the component needs there,
/// plus the seconds of the component.
pub struct Heft {
    problem: Problem,
    ready: ReadyQueue,
    /// By device: when it will be free, in seconds of the clock, and its components.
    free: Vec<f64>,
    running: Vec<Vec<usize>>,
    lost: Vec<bool>,
    /// By component: its device in this run.
    ran_on: Vec<Option<usize>>,
}

impl Heft {
    pub fn new(problem: Problem) -> Self {
        let devices = problem.devices.len();
        Self {
            ran_on: vec![None; problem.tasks.len()],
            problem,
            ready: ReadyQueue::default(),
            free: vec![0.0; devices],
            running: vec![Vec::new(); devices],
            lost: vec![false; devices],
        }
    }

    /// Seconds of copies before a component can begin on a device, to which all data
    /// from elsewhere are written. Data of other devices are in host memory when the
    /// component that makes them has ended.
    fn copies(&self, component: usize, device: usize) -> f64 {
        let task = &self.problem.tasks[component];
        let from_others = task
            .predecessors
            .iter()
            .filter_map(|(before, bytes)| (self.ran_on[*before] != Some(device)).then_some(*bytes));
        let bytes = task.given + from_others.sum::<u64>();
        self.problem.devices[device].transfer(bytes)
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
        self.ready.clear();
        self.free.fill(0.0);
        self.running.iter_mut().for_each(Vec::clear);
        self.ran_on.fill(None);
    }

    fn ready(&mut self, component: usize, _now: Nanos) {
        self.ready.push(&self.problem, component);
    }

    fn next(&mut self, now: Nanos) -> Option<Assignment> {
        let mut ready = std::mem::take(&mut self.ready);
        let taken = ready.take(|component| {
            let finish = |d| Some((d, self.finish(component, d, now as f64 / 1e9)?));
            (0..self.free.len())
                .filter_map(finish)
                .min_by(|one, other| one.1.total_cmp(&other.1))
        });
        self.ready = ready;
        let (component, (device, finish)) = taken?;
        self.free[device] = finish;
        self.running[device].push(component);
        self.ran_on[component] = Some(device);
        Some(Assignment { component, device })
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

    fn lost(&mut self, device: usize) {
        self.lost[device] = true;
        self.ready.clear();
        self.running.iter_mut().for_each(Vec::clear);
        self.free.fill(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::fixtures::{layers, run};

    #[test]
    fn components_go_where_they_are_finished_first() {
        let problem = layers(1, 8, [3.0, 1.0]);
        let told = run(&mut Heft::new(problem.clone()), &problem, |d, _| {
            [3.0, 1.0][d]
        });
        assert_eq!(told, [(6.0, vec![2, 6])]);
        // A CPU that takes longer than the GPU for all gets nothing.
        let problem = layers(1, 8, [30.0, 1.0]);
        let told = run(&mut Heft::new(problem.clone()), &problem, |d, _| {
            [30.0, 1.0][d]
        });
        assert_eq!(told, [(8.0, vec![0, 8])]);
    }

    #[test]
    fn copies_count() {
        let mut problem = layers(1, 1, [3.0, 1.0]);
        problem.tasks[0].given = 1_000_000_000;
        let mut heft = Heft::new(problem.clone());
        heft.ready(0, 0);
        assert_eq!(
            heft.next(0).map(|a| a.device),
            Some(1),
            "1 s and 1 s of copies"
        );
        problem.tasks[0].given *= 3;
        let mut heft = Heft::new(problem);
        heft.ready(0, 0);
        assert_eq!(
            heft.next(0).map(|a| a.device),
            Some(0),
            "1 s and 3 s of copies"
        );
    }

    #[test]
    fn the_highest_rank_goes_first() {
        let mut problem = layers(1, 3, [1.0, 1.0]);
        problem.tasks[1].rank = 9.0;
        let mut heft = Heft::new(problem);
        (0..3).for_each(|component| heft.ready(component, 0));
        let order: Vec<_> = std::iter::from_fn(|| heft.next(0)).collect();
        let order: Vec<_> = order.iter().map(|a| a.component).collect();
        assert_eq!(order, [1, 0, 2]);
    }
}

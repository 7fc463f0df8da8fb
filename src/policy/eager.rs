//! Eager: the ready component of the highest rank goes to any idle device (PySchedCL,
//! experiment 2, after StarPU's `eager`).

use super::ready_queue::ReadyQueue;
use super::{Finished, Policy, Problem};
use crate::time::Nanos;

/// The policy. Each device has one component at a time. The kind of device that a
/// component is to run on does not matter.
pub struct Eager {
    problem: Problem,
    ready: ReadyQueue,
    /// By device: whether it has a component.
    busy: Vec<bool>,
}

impl Eager {
    pub fn new(problem: Problem) -> Self {
        let devices = problem.devices.len();
        Self {
            problem,
            ready: ReadyQueue::default(),
            busy: vec![false; devices],
        }
    }
}

impl Policy for Eager {
    fn name(&self) -> &'static str {
        "eager"
    }

    fn may_run(&self, component: usize, device: usize) -> bool {
        self.problem.able(component, device)
    }

    fn begin(&mut self) {
        self.ready.clear();
        self.busy.fill(false);
    }

    fn ready(&mut self, component: usize, _now: Nanos) {
        self.ready.push(&self.problem, component);
    }

    fn next(&mut self, device: usize, _now: Nanos) -> Option<usize> {
        if self.busy[device] {
            return None;
        }
        let problem = &self.problem;
        let component = self
            .ready
            .pop_if(|component| problem.able(component, device))?;
        self.busy[device] = true;
        Some(component)
    }

    fn finished(&mut self, finished: &Finished) {
        self.busy[finished.device] = false;
    }

    fn lost(&mut self, _device: usize) {
        self.ready.clear();
        self.busy.fill(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::fixtures::{layers, run};

    #[test]
    fn an_idle_device_gets_the_next_component() {
        let problem = layers(1, 8, [3.0, 1.0]);
        let told = run(&mut Eager::new(problem.clone()), &problem, |d, _| {
            [3.0, 1.0][d]
        });
        // The slow one begins with one, and takes another at 3 s and at 6 s.
        assert_eq!(told, [(6.0, vec![2, 6])]);
    }

    #[test]
    fn a_busy_device_gets_nothing() {
        let problem = layers(1, 2, [1.0, 1.0]);
        let mut eager = Eager::new(problem);
        eager.begin();
        eager.ready(0, 0);
        eager.ready(1, 0);
        assert_eq!(eager.next(1, 0), Some(0));
        assert_eq!(eager.next(1, 0), None, "it is busy");
    }
}

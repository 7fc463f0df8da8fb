//! Eager: the ready component of the highest rank goes to any idle device (PySchedCL,
//! experiment 2, after StarPU's `eager`).

use super::ready_queue::ReadyQueue;
use super::{Policy, Problem};
use crate::time::Nanos;

/// The policy. The kind of device that a component is to run on does not matter.
pub struct Eager {
    problem: Problem,
    ready: ReadyQueue,
    window: usize,
}

impl Eager {
    /// The policy in which each device has one component at a time.
    pub fn new(problem: Problem) -> Self {
        Self::with_window(problem, 1)
    }

    /// The policy in which each device has `window` components, and computes one of
    /// them.
    pub fn with_window(problem: Problem, window: usize) -> Self {
        Self {
            problem,
            ready: ReadyQueue::default(),
            window,
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

    fn window(&self) -> Option<usize> {
        Some(self.window)
    }

    fn begin(&mut self) {
        self.ready.clear();
    }

    fn ready(&mut self, component: usize, _now: Nanos) {
        self.ready.push(&self.problem, component);
    }

    fn next(&mut self, device: usize, _now: Nanos) -> Option<usize> {
        let problem = &self.problem;
        self.ready
            .pop_if(|component| problem.able(component, device))
    }

    fn changed(&mut self, _device: usize, _lost: bool) {
        self.ready.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::fixtures::{layers, run};

    #[test]
    fn an_idle_device_gets_the_next_component() {
        let problem = layers(1, 8, [3.0, 1.0]);
        let levels = run(&mut Eager::new(problem.clone()), &problem, |d, _| {
            [3.0, 1.0][d]
        });
        // The slow one begins with one, and takes another at 3 s and at 6 s.
        assert_eq!(levels, [(6.0, vec![2, 6])]);
    }
}

//! Eager: the ready component of the highest rank goes to whichever device is
//! idle (PySchedCL, experiment 2, after StarPU's `eager`).

use super::ready::Ready;
use super::{Assignment, Finished, Policy, Problem};
use crate::time::Nanos;

/// The policy. Devices are idle or busy: each has one component at a time.
/// What a component is meant for does not matter to it.
pub struct Eager {
    problem: Problem,
    ready: Ready,
    /// By device: whether it has a component, and whether it is lost.
    busy: Vec<bool>,
    lost: Vec<bool>,
    /// The device at which the next look begins.
    turn: usize,
}

impl Eager {
    pub fn new(problem: Problem) -> Self {
        let devices = problem.spots.len();
        Self {
            problem,
            ready: Ready::default(),
            busy: vec![false; devices],
            lost: vec![false; devices],
            turn: 0,
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
        self.turn = 0;
    }

    fn ready(&mut self, component: usize, _now: Nanos) {
        self.ready.push(&self.problem, component);
    }

    fn next(&mut self, _now: Nanos) -> Option<Assignment> {
        let devices = self.busy.len();
        let (component, device) = self.ready.take(|component| {
            (0..devices)
                .map(|step| (self.turn + step) % devices)
                .find(|d| !self.busy[*d] && !self.lost[*d] && self.problem.able(component, *d))
        })?;
        self.busy[device] = true;
        self.turn = (device + 1) % devices;
        Some(Assignment { component, device })
    }

    fn finished(&mut self, finished: &Finished) {
        self.busy[finished.device] = false;
    }

    fn lost(&mut self, device: usize) {
        self.lost[device] = true;
        self.ready.clear();
        self.busy.fill(false);
    }
}

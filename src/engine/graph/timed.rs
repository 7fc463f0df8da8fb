//! A policy that measures how long another one decides.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::policy::{Finished, Policy, Prefetch};
use crate::time::Nanos;

/// A policy, and the real time that passed within its calls.
pub(super) struct Timed {
    policy: Box<dyn Policy>,
    making: Duration,
    spent: Cell<Duration>,
}

impl Timed {
    /// The policy, which took so long to make.
    pub fn new(policy: Box<dyn Policy>, making: Duration) -> Self {
        Self {
            policy,
            making,
            spent: Cell::new(making),
        }
    }

    /// Another run begins: seconds count from here, with the making.
    pub fn restart(&self) {
        self.spent.set(self.making);
    }

    /// Seconds of the run until now.
    pub fn seconds(&self) -> f64 {
        self.spent.get().as_secs_f64()
    }

    fn ask<T>(&self, question: impl FnOnce(&dyn Policy) -> T) -> T {
        let began = Instant::now();
        let answer = question(self.policy.as_ref());
        self.spent.set(self.spent.get() + began.elapsed());
        answer
    }

    fn tell<T>(&mut self, event: impl FnOnce(&mut dyn Policy) -> T) -> T {
        let began = Instant::now();
        let answer = event(self.policy.as_mut());
        self.spent.set(self.spent.get() + began.elapsed());
        answer
    }
}

impl Policy for Timed {
    fn name(&self) -> &'static str {
        self.policy.name()
    }

    fn may_run(&self, component: usize, device: usize) -> bool {
        self.ask(|policy| policy.may_run(component, device))
    }

    fn certain(&self, component: usize) -> Option<usize> {
        self.ask(|policy| policy.certain(component))
    }

    fn window(&self) -> Option<usize> {
        self.policy.window()
    }

    fn begins(&self, prepared: &[usize]) -> usize {
        self.ask(|policy| policy.begins(prepared))
    }

    fn begin(&mut self) {
        self.tell(|policy| policy.begin());
    }

    fn ready(&mut self, component: usize, now: Nanos) {
        self.tell(|policy| policy.ready(component, now));
    }

    fn next(&mut self, device: usize, now: Nanos) -> Option<usize> {
        self.tell(|policy| policy.next(device, now))
    }

    fn prefetch(&mut self, device: usize) -> Option<Prefetch> {
        self.tell(|policy| policy.prefetch(device))
    }

    fn finished(&mut self, finished: &Finished) {
        self.tell(|policy| policy.finished(finished));
    }

    fn lost(&mut self, device: usize) {
        self.tell(|policy| policy.lost(device));
    }

    fn returned(&mut self, device: usize) {
        self.tell(|policy| policy.returned(device));
    }

    fn arrived(&mut self, device: usize, datum: usize) {
        self.tell(|policy| policy.arrived(device, datum));
    }

    fn evicted(&mut self, device: usize, datum: usize) {
        self.tell(|policy| policy.evicted(device, datum));
    }

    fn victim(&mut self, device: usize, evictable: &dyn Fn(usize) -> bool) -> Option<usize> {
        self.tell(|policy| policy.victim(device, evictable))
    }
}

//! What goes where, and when: one file a policy.
//!
//! A policy is a state machine. It is told which component became ready, which
//! ended and when, and which device was lost; it answers which component goes
//! to which device next. It takes no lock, reads no clock and calls no device,
//! so that it is the same on real devices and in the simulator.
//!
//! * [`Problem`] is all that a policy knows: numbers, no kernels.
//! * [`Clustering`] has a given map, [`Eager`] takes whatever is idle, [`Heft`]
//!   looks for the earliest finish, [`Adaptive`] learns how much of a layer is
//!   best for whom.
//! * [`Search`] goes through maps and queue counts for the best of them.

mod adaptive;
mod clustering;
mod eager;
mod heft;
mod learned;
mod problem;
mod ready;
mod search;

#[cfg(test)]
mod testbed;

pub use adaptive::Adaptive;
pub use clustering::{Clustering, MapError};
pub use eager::Eager;
pub use heft::Heft;
pub use problem::{Problem, Spot, Task};
pub use search::{Configuration, Search, Space};

use crate::time::Nanos;

/// A component for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    pub component: usize,
    pub device: usize,
}

/// A component that has ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    pub component: usize,
    pub device: usize,
    /// When it was handed to the device.
    pub dispatched: Nanos,
    /// When its last command ended.
    pub ended: Nanos,
    /// Bytes that were written to the device for it.
    pub written: u64,
}

/// Who decides. Devices and components are counted as in the [`Problem`].
pub trait Policy {
    /// Its name in reports: `clustering`, `eager` ...
    fn name(&self) -> &'static str;

    /// Whether it may ever give this component to this device. Memory is
    /// prepared for all that may be.
    fn may_run(&self, component: usize, device: usize) -> bool;

    /// The one device that will get this component, if that is certain now, or
    /// nearly so: what only that device needs does not leave it. If another gets
    /// it after all, that is right, but waits for a copy.
    fn certain(&self, _component: usize) -> Option<usize> {
        None
    }

    /// The graph runs from its begin. What was learned stays.
    fn begin(&mut self);

    /// All that a component waits for has ended. After a loss a component may
    /// become ready again.
    fn ready(&mut self, component: usize, now: Nanos);

    /// The next component to hand out now; asked until there is none, and again
    /// whenever something ended.
    fn next(&mut self, now: Nanos) -> Option<Assignment>;

    /// A component has ended well.
    fn finished(&mut self, finished: &Finished);

    /// A device is gone, and nothing may be given to it any more. Nothing runs at
    /// that moment. What was ready is told again, with what has to be done again.
    fn lost(&mut self, device: usize);
}

//! Scheduling policies, one a file: which component goes to which device, and when.
//!
//! A policy is a state machine. It learns which component became ready, which ended
//! and when, which datum arrived in or left a device's memory, and which device was
//! lost or is back; it answers which component a device gets next and which datum leaves
//! a full memory. It takes no lock, reads no clock and calls no device, so it is the same on
//! real devices and in the simulator.
//!
//! * [`Problem`] is all that a policy knows: numbers, no kernels.
//! * [`Clustering`] has a given map, [`Eager`] takes any idle device, [`Heft`] the
//!   earliest finishing time, and [`Adaptive`] learns the best division of a layer.
//! * For tasks that share data in small memories: [`Locality`] has the loads that cost
//!   least in a second of work, [`Dmdar`] the earliest completion and the fewest loads
//!   next, [`Darts`] the load that frees the most tasks, and [`Assigned`] a partition or
//!   packages made before.
//! * For command queues: [`auto_fit`] finds the map of the least predicted time, which
//!   [`AutoFit`] applies to a graph, and [`RoundRobin`] gives devices turns.
//! * [`Recorded`] repeats a schedule.
//! * [`NamedPolicy`] is the registry: it makes these from their names, and says what each needs.
//! * [`Growing`] is any of them for tasks that arrive while others run.
//! * [`Search`] looks for the best map and queue counts.

mod adaptive;
pub mod auto_fit;
mod clustering;
mod darts;
mod device_lists;
mod dmdar;
mod eager;
mod growing;
mod heft;
mod lacks;
mod locality;
mod luf;
mod mhfp;
mod named;
mod partition;
mod problem;
mod ready_queue;
mod recorded;
mod rehearsal;
mod round_robin;
mod search;
mod tournament;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod sharing_tests;

pub use adaptive::Adaptive;
pub use auto_fit::AutoFit;
pub use clustering::{Clustering, MapError};
pub use darts::{Darts, DartsOptions};
pub use device_lists::{Assigned, ListOptions};
pub use dmdar::Dmdar;
pub use eager::Eager;
pub use growing::Growing;
pub use heft::Heft;
pub use locality::Locality;
pub use luf::Eviction;
pub use named::{NamedPolicy, PolicyNameError, PolicyOptions};
pub use problem::{Datum, DeviceModel, Links, Problem, Task};
pub use recorded::Recorded;
pub use rehearsal::{SIDE_BY_SIDE, rehearse};
pub use round_robin::{RoundRobin, Turns};
pub use search::{Configuration, Search, Space};

use crate::time::Nanos;

/// Components of a device's window by default, for tasks that share data. Where four
/// GPUs share a bus, the loads of one block for each take as long as 10 tasks of the
/// matrix product of Gonthier et al. A shorter window leaves GPUs idle, a much longer
/// one takes the room of data that are used again.
pub const WINDOW: usize = 16;

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

/// A datum to load ahead of the component that needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefetch {
    pub component: usize,
    pub datum: usize,
}

/// A scheduling policy. Devices and components are numbered as in the [`Problem`].
pub trait Policy {
    /// Its name in reports: `clustering`, `eager` ...
    fn name(&self) -> &'static str;

    /// Whether it may ever assign this component to this device. Memory is prepared
    /// for all such pairs.
    fn may_run(&self, component: usize, device: usize) -> bool;

    /// The device that will get this component, if that is certain or likely now.
    /// Data that only that device needs do not leave it. If another device gets the
    /// component, the result is right, but waits for a copy.
    fn certain(&self, _component: usize) -> Option<usize> {
        None
    }

    /// How many components a device has at once. It computes the first; the data of
    /// the others are loaded meanwhile. `None`: as many as the policy gives it, and it
    /// computes them in any order that their precedences allow.
    fn window(&self) -> Option<usize> {
        None
    }

    /// Which of these components of a device's window begins, all of whose data are there or on
    /// their way: its place in the list, which has one at least and the order in which the policy
    /// gave them.
    fn begins(&self, _prepared: &[usize]) -> usize {
        0
    }

    /// A run of the graph begins. What was learned stays.
    fn begin(&mut self);

    /// All that a component waits for has ended. After a loss a component may
    /// become ready again.
    fn ready(&mut self, component: usize, now: Nanos);

    /// The next component for a device that is not lost. The device with the fewest
    /// components is asked first, until none gets one, and again whenever a command
    /// ended.
    fn next(&mut self, device: usize, now: Nanos) -> Option<usize>;

    /// A component has ended well.
    fn finished(&mut self, _finished: &Finished) {}

    /// A device was lost, and gets nothing more. Nothing runs at that moment. Ready
    /// components are reported again, with those that must be repeated.
    fn lost(&mut self, device: usize) {
        self.changed(device, true);
    }

    /// A lost device is back, with nothing in its memory, and may get components again.
    /// Nothing runs at that moment. Ready components are reported again.
    fn returned(&mut self, device: usize) {
        self.changed(device, false);
    }

    /// A device was lost or is back: for policies that do the same in both cases. Others have
    /// `lost` and `returned` of their own.
    fn changed(&mut self, _device: usize, _lost: bool) {}

    /// A datum that a device is to load although no component that it was given needs it,
    /// and the component for which it is. Asked when no load of the device is in flight.
    fn prefetch(&mut self, _device: usize) -> Option<Prefetch> {
        None
    }

    /// A datum is on its way to a device's own memory, or was made there.
    fn arrived(&mut self, _device: usize, _datum: usize) {}

    /// A datum has left a device's own memory: to make room, or because another
    /// device made a later version of it.
    fn evicted(&mut self, _device: usize, _datum: usize) {}

    /// The datum to evict from a device's own memory to make room. Only what
    /// `evictable` admits can be: no component that was given to the device needs it
    /// and no copy of it is in flight. `None` leaves the choice to the engine, which
    /// evicts the least recently used.
    fn victim(&mut self, _device: usize, _evictable: &dyn Fn(usize) -> bool) -> Option<usize> {
        None
    }
}

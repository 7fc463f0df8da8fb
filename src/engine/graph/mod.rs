//! Running task graphs: a graph, its components, a policy, and the devices of a
//! runtime.
//!
//! A [`Plan`] is what outlives a run: memory, queues and compiled kernels
//! (`storage`, `plan`). A run asks the policy for components, enqueues each
//! whole as [`crate::graph::CommandQueues`] has it (`dispatch`), hears of ends
//! and tells the policy (`drive`); `books` knows what has been made and where it
//! lies. Nothing waits for the host within a component. [`numbers`] makes of a
//! graph what policies know of it, [`times`] measures kernels one by one, and
//! [`search`] tries configurations.
//!
//! Data that several components or the host need are in host memory when their
//! maker has ended, so a component can begin on any device, and what a lost
//! device had not finished can be done again elsewhere. What only one device
//! needs stays there; if that is lost, the components that made it run again.

mod books;
mod dispatch;
mod drive;
mod error;
mod log;
pub mod numbers;
mod outcome;
mod plan;
mod recover;
pub mod search;
mod storage;
pub mod times;

#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicBool;

pub use error::GraphRunError;
pub use outcome::{DeviceUse, GraphLoss, GraphOutcome, Launched, Placement};
pub use plan::{Plan, abilities};

/// How a graph is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Queues of each device; devices without an entry have one.
    pub queues: Vec<usize>,
    /// Queues that one component is spread over, of each device; devices without
    /// an entry spread it over all. With fewer, components take turns.
    pub widths: Vec<usize>,
    /// Keep the spans of all commands, with the devices' own times. Without,
    /// queues need not stamp their commands, which is cheaper.
    pub trace: bool,
    /// Leave what came from the host on the devices for the next run.
    pub keep: bool,
}

impl Options {
    /// Every device with so many queues.
    pub fn queues(queues: Vec<usize>) -> Self {
        Self {
            queues,
            widths: Vec::new(),
            trace: false,
            keep: false,
        }
    }

    /// Queues of a device, and of these how many for one component.
    pub fn of(&self, device: usize) -> (usize, usize) {
        let queues = self.queues.get(device).copied().unwrap_or(1).max(1);
        let width = self.widths.get(device).copied().unwrap_or(queues);
        (queues, width.clamp(1, queues))
    }
}

/// How a run is watched and stopped.
pub struct Control<'a> {
    /// Set from outside: hand out nothing more, and end.
    pub stop: &'a AtomicBool,
    /// Told the components done and all that there are.
    pub progress: &'a mut dyn FnMut(usize, usize),
}

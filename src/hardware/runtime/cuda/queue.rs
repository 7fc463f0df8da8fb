//! An in-order queue: a stream, and its commands in flight.

use std::collections::VecDeque;
use std::sync::Arc;

use super::handle::{Event, Stream};
use super::launch::QueueMemory;
use super::memory::KeepAlive;
use crate::runtime::{Completion, EventId};

/// An open queue.
pub(super) struct OpenQueue {
    /// Index of its device.
    pub device: usize,
    pub stream: Stream,
    /// Whether its commands have time stamps.
    pub profiling: bool,
    /// Set once a command of this queue has failed: all later ones fail too.
    pub poisoned: bool,
    /// The commands behind the last one with an event.
    pub uncovered: Uncovered,
    /// Commands with an event, oldest first.
    pub in_flight: VecDeque<Pending>,
    /// Memory of series of kernels and of launches by libraries.
    pub scratch: QueueMemory,
    /// Memory that libraries use for themselves.
    pub room: QueueMemory,
}

/// What the commands of a queue behind its last one with an event use and wait for.
#[derive(Default)]
pub(super) struct Uncovered {
    pub keep_alive: Vec<KeepAlive>,
    pub waits: Vec<EventId>,
    pub any: bool,
}

/// A command in flight.
pub(super) struct Pending {
    /// The completion, as it is when all goes well, without its times.
    pub completion: Completion,
    pub waits: Vec<EventId>,
    pub events: Events,
    pub keep_alive: Vec<KeepAlive>,
}

/// A command's events.
pub(super) struct Events {
    /// Behind the command. It has a time stamp if `begin` is there.
    pub end: Arc<Event>,
    /// Before it, on a profiled queue.
    pub begin: Option<Arc<Event>>,
    /// Around the kernels of a mixed series, on a profiled queue.
    pub kernels: Option<[Arc<Event>; 2]>,
}

impl OpenQueue {
    pub(super) fn new(device: usize, stream: Stream, profiling: bool) -> Self {
        Self {
            device,
            stream,
            profiling,
            poisoned: false,
            uncovered: Uncovered::default(),
            in_flight: VecDeque::new(),
            scratch: None,
            room: None,
        }
    }

    /// Waits until the commands that no event covers have ended.
    pub(super) fn finish(&mut self) {
        if self.uncovered.any {
            // The next call detects a device that fails here.
            let _ = self.stream.synchronize();
        }
        self.uncovered = Uncovered::default();
    }
}

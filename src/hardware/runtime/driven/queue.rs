//! An in-order queue, and its commands under way.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Driver, KeepAlive};
use crate::runtime::{Completion, EventId, Nanos, QueueId};

/// An open queue.
pub(in crate::runtime) struct OpenQueue<D: Driver> {
    /// What its driver has of it.
    pub own: D::Queue,
    /// Index of its device.
    pub device: usize,
    /// Whether its commands have time stamps.
    pub profiling: bool,
    /// Set once a command of this queue has failed: all later ones fail too.
    pub(super) poisoned: bool,
    /// The commands behind the last one with an event.
    pub uncovered: Uncovered,
    /// Commands with an event, oldest first.
    pub(super) in_flight: VecDeque<Pending<D>>,
    /// Commands that were not flushed yet.
    pub(super) unflushed: usize,
    /// When the host learnt of a command's end last.
    pub(super) ended: Nanos,
}

/// What the commands of a queue behind its last one with an event use and wait for. A queue is in
/// order, so the end of a command covers all before it, and an event for each would be wasted: of
/// the 6.7 us of a kernel on NVIDIA's OpenCL 1.3 are its event's (580.159 on an H200).
#[derive(Default)]
pub(in crate::runtime) struct Uncovered {
    pub(super) keep_alive: Vec<KeepAlive>,
    pub(super) waits: Vec<EventId>,
    pub(super) any: bool,
}

impl Uncovered {
    /// Keeps what commands use that run whatever comes next.
    pub(in crate::runtime) fn keep(&mut self, uses: impl IntoIterator<Item = KeepAlive>) {
        self.keep_alive.extend(uses);
        self.any = true;
    }
}

/// A command under way.
pub(in crate::runtime) struct Pending<D: Driver> {
    /// The completion, as it is when all goes well, without its times.
    pub completion: Completion,
    /// The commands it waits for, and those that its end covers.
    pub waits: Vec<EventId>,
    /// The event to wait for.
    pub last: Arc<D::Event>,
    /// What it began and ended with, on a queue with time stamps.
    pub timed: Option<[Arc<D::Event>; 2]>,
    /// Around the kernels of a mixed series, on such a queue.
    pub kernels: Option<[Arc<D::Event>; 2]>,
    pub(super) keep_alive: Vec<KeepAlive>,
}

/// A command that has not ended, for those that wait for it.
pub(in crate::runtime) struct InFlight<D: Driver> {
    pub id: EventId,
    pub queue: QueueId,
    /// Index of its device.
    pub device: usize,
    pub event: Arc<D::Event>,
}

impl<D: Driver> OpenQueue<D> {
    pub(super) fn new(device: usize, own: D::Queue, profiling: bool) -> Self {
        Self {
            own,
            device,
            profiling,
            poisoned: false,
            uncovered: Uncovered::default(),
            in_flight: VecDeque::new(),
            unflushed: 0,
            ended: 0,
        }
    }
}

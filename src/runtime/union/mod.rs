//! Several backends as one machine.
//!
//! The union owns what backends cannot know of one another: device ids of the
//! whole machine, host memory known to all, and waits for events of another
//! backend. [`Union`] keeps the books, `runtime` is its face; `order` decides,
//! without touching a backend, which commands must be held back and when they
//! can go.
//!
//! A backend keeps its own queues in order and waits for its own events. So
//! only a command that waits for a foreign event is held back here, with
//! everything behind it in its queue.

mod order;
mod runtime;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, TryRecvError};

use self::order::{Order, Step};
use super::{
    Backend, BufferId, Command, Completion, DeviceId, EventId, HostMemoryId, HostRegion, IdMap,
    Nanos, QueueId, Runtime, RuntimeError, Status, Tag,
};
use crate::machine::{Device, DeviceKind};

/// After so long without a completion backends look after their devices.
/// Longer than any sensible command; nothing happens to one that is longer.
const SILENCE: Duration = Duration::from_secs(30);

/// Bytes from a page's begin to where every other host allocation begins.
///
/// Many processors tell by the lowest twelve bits of addresses whether a load
/// may need what an earlier store writes, and wait where they are alike. Of two
/// vectors that both begin with a page, every number that is read beside one
/// that was just written is waited for: products of bands on one Xeon core
/// took up to nine times as long.
const SHIFT: u64 = 2048;

/// The runtime over any number of real backends.
pub struct Union {
    backends: Vec<Box<dyn Backend>>,
    devices: Vec<Device>,
    /// Each device's backend, and its id there.
    places: Vec<(usize, DeviceId)>,
    queues: IdMap<QueueId, DeviceId>,
    buffers: IdMap<BufferId, usize>,
    regions: IdMap<HostMemoryId, HostRegion>,
    order: Order<Held>,
    flying: IdMap<EventId, Flying>,
    /// Completions that nobody has asked for yet.
    arrived: VecDeque<Completion>,
    /// What was released while commands that may use it were held back.
    released: Vec<Released>,
    completions: Receiver<Completion>,
    epoch: Instant,
    /// What the next host allocation is shifted by; see [`SHIFT`].
    shift: u64,
    /// See [`SILENCE`].
    silence: Duration,
    /// When something was last submitted, completed or inspected.
    quiet_since: Instant,
}

/// A command that is held back.
struct Held {
    command: Command,
    tag: Tag,
    /// How it failed, if its backend refused it.
    refusal: Option<Status>,
}

/// A command in flight.
#[derive(Clone, Copy)]
struct Flying {
    queue: QueueId,
    device: DeviceId,
    queued: Nanos,
    /// Whether a later command of its queue tells of its end.
    quiet: bool,
}

enum Released {
    Host(HostMemoryId),
    Buffer(BufferId),
    /// A queue of a backend.
    Queue(QueueId, usize),
}

impl Union {
    /// Unites backends whose completions arrive at `completions`, and whose
    /// times count from `epoch`.
    pub fn new(
        backends: Vec<Box<dyn Backend>>,
        completions: Receiver<Completion>,
        epoch: Instant,
    ) -> Self {
        let mut devices = Vec::new();
        let mut places = Vec::new();
        for (index, backend) in backends.iter().enumerate() {
            for (local, device) in backend.devices().iter().enumerate() {
                devices.push(device.clone());
                places.push((index, DeviceId(local)));
            }
        }
        Self {
            backends,
            devices,
            places,
            queues: IdMap::default(),
            buffers: IdMap::default(),
            regions: IdMap::default(),
            order: Order::default(),
            flying: IdMap::default(),
            arrived: VecDeque::new(),
            released: Vec::new(),
            completions,
            epoch,
            shift: 0,
            silence: SILENCE,
            quiet_since: epoch,
        }
    }

    /// By what a host allocation is shifted: one or the other, in turns, unless
    /// a GPU computes in host memory, which may want whole pages.
    fn next_shift(&mut self) -> u64 {
        let in_place = |d: &Device| d.kind == DeviceKind::Gpu && d.shares_host_memory;
        match self.devices.iter().any(in_place) {
            true => 0,
            false => {
                let next = SHIFT - self.shift;
                std::mem::replace(&mut self.shift, next)
            }
        }
    }

    fn place(&self, device: DeviceId) -> Result<(usize, DeviceId), RuntimeError> {
        self.places
            .get(device.0)
            .copied()
            .ok_or(RuntimeError::Unknown { what: "device" })
    }

    /// Takes in what has completed so far.
    fn drain(&mut self) {
        while let Ok(completion) = self.completions.try_recv() {
            self.take_in(completion);
        }
    }

    /// Has every backend look for ends that nothing tells of; true while there
    /// is more to look for.
    fn look(&mut self) -> bool {
        let looks = self.backends.iter_mut().map(|backend| backend.look());
        looks.fold(false, |more, looking| more | looking)
    }

    /// A completion, if one is there; else a moment for others on this core.
    fn glance(&self) -> Result<Completion, RecvTimeoutError> {
        self.completions
            .try_recv()
            .map_err(|nothing| match nothing {
                TryRecvError::Empty => {
                    std::thread::yield_now();
                    RecvTimeoutError::Timeout
                }
                TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
            })
    }

    /// Takes in a backend's completion, and sends on what it lets go.
    fn take_in(&mut self, mut completion: Completion) {
        let Some(flying) = self.flying.remove(&completion.event) else {
            // Nothing that was submitted here; it must not count twice.
            return;
        };
        completion.queue = flying.queue;
        completion.device = flying.device;
        completion.queued = flying.queued;
        self.quiet_since = Instant::now();
        let failed = completion.status != Status::Done;
        self.order.ended(completion.event, failed);
        self.arrived.push_back(completion);
        self.advance();
    }

    /// Sends on, or fails, every held command whose time has come.
    fn advance(&mut self) {
        while let Some(step) = self.order.next() {
            match step {
                Step::Send { event, held, wait } => {
                    let sent = self.send(event, held.command.clone(), &wait, held.tag.clone());
                    if let Err(error) = sent {
                        let refusal = Some(match error {
                            RuntimeError::DeviceLost { why, .. } => Status::DeviceLost(why),
                            other => Status::Failed(other.to_string()),
                        });
                        self.order.put_back(event, Held { refusal, ..held });
                    }
                }
                Step::Fail { event, held } => self.fail(event, held),
            }
        }
        if self.order.holds_nothing() {
            for released in std::mem::take(&mut self.released) {
                self.release(released);
            }
        }
    }

    /// Notes a queue that a backend has opened.
    fn opened(&mut self, queue: QueueId, device: DeviceId, backend: usize) {
        self.queues.insert(queue, device);
        self.order.open(queue, backend);
    }

    fn send(
        &mut self,
        event: EventId,
        command: Command,
        wait: &[EventId],
        tag: Tag,
    ) -> Result<(), RuntimeError> {
        let unknown = RuntimeError::Unknown { what: "queue" };
        let flying = *self.flying.get(&event).ok_or(unknown)?;
        let (backend, _) = self.place(flying.device)?;
        self.backends[backend].submit(flying.queue, command, wait, tag, event)
    }

    /// Ends a command that its backend never got or refused.
    fn fail(&mut self, event: EventId, held: Held) {
        let Some(flying) = self.flying.remove(&event) else {
            return;
        };
        let now = self.now();
        self.order.ended(event, true);
        self.arrived.push_back(Completion {
            event,
            device: flying.device,
            queue: flying.queue,
            kind: held.command.kind(),
            tag: held.tag,
            queued: flying.queued,
            submitted: now,
            started: now,
            ended: now,
            bytes: held.command.bytes(),
            stages: None,
            workers: None,
            status: held.refusal.unwrap_or(Status::Skipped),
        });
    }

    fn release(&mut self, released: Released) {
        match released {
            Released::Host(memory) => {
                for backend in &mut self.backends {
                    backend.forget_host(memory);
                }
            }
            Released::Buffer(buffer) => {
                if let Some(backend) = self.buffers.remove(&buffer) {
                    self.backends[backend].free(buffer);
                }
            }
            Released::Queue(queue, backend) => {
                self.order.close(queue);
                self.backends[backend].free_queue(queue);
            }
        }
    }

    /// Releases something now, or when no command is held back any more.
    fn release_in_time(&mut self, released: Released) {
        if self.order.holds_nothing() {
            self.release(released);
        } else {
            self.released.push(released);
        }
    }
}

#[cfg(test)]
mod tests;

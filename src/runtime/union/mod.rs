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

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use crossbeam_channel::Receiver;

use self::order::{Order, Step};
use super::{
    Backend, BufferId, Command, Completion, DeviceId, EventId, HostMemoryId, HostRegion, Nanos,
    QueueId, Runtime, RuntimeError, Status, Tag,
};
use crate::machine::Device;

/// The runtime over any number of real backends.
pub struct Union {
    backends: Vec<Box<dyn Backend>>,
    devices: Vec<Device>,
    /// Each device's backend, and its id there.
    places: Vec<(usize, DeviceId)>,
    queues: HashMap<QueueId, DeviceId>,
    buffers: HashMap<BufferId, usize>,
    regions: HashMap<HostMemoryId, HostRegion>,
    order: Order<Held>,
    /// When each command in flight was queued, and its queue.
    flying: HashMap<EventId, (QueueId, Nanos)>,
    /// Completions that nobody has asked for yet.
    arrived: VecDeque<Completion>,
    /// Memory released while commands that may use it were held back.
    released: Vec<Released>,
    completions: Receiver<Completion>,
    epoch: Instant,
}

/// A command that is held back.
struct Held {
    command: Command,
    tag: Tag,
    /// How it failed, if its backend refused it.
    refusal: Option<Status>,
}

enum Released {
    Host(HostMemoryId),
    Buffer(BufferId),
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
            queues: HashMap::new(),
            buffers: HashMap::new(),
            regions: HashMap::new(),
            order: Order::default(),
            flying: HashMap::new(),
            arrived: VecDeque::new(),
            released: Vec::new(),
            completions,
            epoch,
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

    /// Takes in a backend's completion, and sends on what it lets go.
    fn take_in(&mut self, mut completion: Completion) {
        let Some((queue, queued)) = self.flying.remove(&completion.event) else {
            // Nothing that was submitted here; it must not count twice.
            return;
        };
        completion.queue = queue;
        completion.queued = queued;
        if let Some(device) = self.queues.get(&queue) {
            completion.device = *device;
        }
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

    fn send(
        &mut self,
        event: EventId,
        command: Command,
        wait: &[EventId],
        tag: Tag,
    ) -> Result<(), RuntimeError> {
        let unknown = RuntimeError::Unknown { what: "queue" };
        let (queue, _) = *self.flying.get(&event).ok_or(unknown)?;
        let device = self.queues.get(&queue).copied();
        let device = device.ok_or(RuntimeError::Unknown { what: "queue" })?;
        let (backend, _) = self.place(device)?;
        self.backends[backend].submit(queue, command, wait, tag, event)
    }

    /// Ends a command that its backend never got or refused.
    fn fail(&mut self, event: EventId, held: Held) {
        let Some((queue, queued)) = self.flying.remove(&event) else {
            return;
        };
        let Some(device) = self.queues.get(&queue).copied() else {
            return;
        };
        let now = self.now();
        self.order.ended(event, true);
        self.arrived.push_back(Completion {
            event,
            device,
            queue,
            kind: held.command.kind(),
            tag: held.tag,
            queued,
            submitted: now,
            started: now,
            ended: now,
            bytes: held.command.bytes(),
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
        }
    }

    /// Releases memory now, or when no command is held back any more.
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

//! Several backends as one machine.
//!
//! The union owns what backends cannot know of one another: device ids of the
//! whole machine, host memory known to all, and waits for events of another
//! backend. This file holds its state, `runtime` implements the trait; `order`
//! decides, without touching a backend, which commands must be held back and when
//! they can be sent. `staging` copies between devices through host memory. `adopt`
//! takes in and returns the user's memory. `faults` makes commands fail on purpose.
//!
//! A backend keeps its own queues in order and waits for its own events. So
//! only a command that waits for a foreign event is held back here, with
//! everything behind it in its queue.

mod adopt;
pub mod faults;
mod order;
mod runtime;
mod staging;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, TryRecvError};

use self::faults::{Fault, Faults};
use self::order::{Order, Step};
use self::staging::{OwnMemory, Role, Spare, Staging};
use super::guarded::Exact;
use super::{
    AdoptedMemory, Backend, BufferId, Command, Completion, DeviceId, EventId, HostMemoryId,
    HostRegion, HostSpan, IdMap, Nanos, PeerPath, QueueId, Runtime, RuntimeError, Status,
};
use crate::machine::{Device, DeviceKind};

/// After so long without a completion the backends inspect their devices.
/// Longer than any sensible command; a longer one is left alone.
const SILENCE: Duration = Duration::from_secs(30);

/// Bytes from a page's begin to where every other host allocation begins.
///
/// Many processors compare the lowest twelve bits of addresses to decide whether a
/// load depends on an earlier store, and wait where they agree (4K aliasing). With
/// two vectors that both begin at a page, each load beside a recent store waits:
/// products of bands on one Xeon core took up to nine times as long.
const SHIFT: u64 = 2048;

/// The runtime over any number of real backends.
pub struct Union {
    backends: Vec<Box<dyn Backend>>,
    devices: Vec<Device>,
    /// Each device's backend, and its id there.
    local_ids: Vec<(usize, DeviceId)>,
    queues: IdMap<QueueId, DeviceId>,
    buffers: IdMap<BufferId, OwnMemory>,
    /// By source and target: how copies go.
    paths: HashMap<(DeviceId, DeviceId), PeerPath>,
    host_bandwidth: Option<f64>,
    staging: Staging,
    regions: IdMap<HostMemoryId, HostRegion>,
    /// Pinned regions that were freed.
    spare: Spare,
    /// The regions that the user allocated.
    adopted: IdMap<HostMemoryId, Arc<AdoptedMemory>>,
    order: Order<Held>,
    in_flight: IdMap<EventId, InFlight>,
    /// By queue: the host memory of the commands that no completion covers yet, with
    /// the events of those that their backend gave one.
    uncovered: IdMap<QueueId, Vec<(Option<EventId>, HostSpan)>>,
    faults: Faults,
    /// Completions that `wait` has not returned yet.
    arrived: VecDeque<Completion>,
    /// What was released while commands that may use it were held back.
    released: Vec<Released>,
    completions: Receiver<Completion>,
    epoch: Instant,
    /// What the next host allocation is shifted by; see [`SHIFT`].
    shift: u64,
    /// How host memory lies between guard zones, if it does; see [`super::guarded`].
    guards: Option<Exact>,
    /// See [`SILENCE`].
    silence: Duration,
    /// When something was last submitted, completed or inspected.
    silent_since: Instant,
}

/// A command that is held back.
struct Held {
    command: Command,
    /// How it fails, if its backend refused it or a fault struck it.
    refusal: Option<Status>,
}

/// A command in flight.
struct InFlight {
    queue: QueueId,
    device: DeviceId,
    queued: Nanos,
    role: Role,
    /// The host memory of this command, and of those that its completion covers.
    uses: Vec<HostSpan>,
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
        let mut local_ids = Vec::new();
        let mut paths = HashMap::new();
        for (index, backend) in backends.iter().enumerate() {
            let first = devices.len();
            for (local, device) in backend.devices().iter().enumerate() {
                devices.push(device.clone());
                local_ids.push((index, DeviceId(local)));
            }
            let local = 0..backend.devices().len();
            for (from, to) in local
                .clone()
                .flat_map(|from| local.clone().map(move |to| (from, to)))
            {
                if let Some(path) = backend.peer_path(DeviceId(from), DeviceId(to)) {
                    paths.insert((DeviceId(first + from), DeviceId(first + to)), path);
                }
            }
        }
        Self {
            backends,
            devices,
            local_ids,
            queues: IdMap::default(),
            buffers: IdMap::default(),
            paths,
            staging: Staging::default(),
            regions: IdMap::default(),
            spare: Spare::default(),
            adopted: IdMap::default(),
            host_bandwidth: None,
            order: Order::default(),
            in_flight: IdMap::default(),
            uncovered: IdMap::default(),
            faults: Faults::default(),
            arrived: VecDeque::new(),
            released: Vec::new(),
            completions,
            epoch,
            shift: 0,
            guards: None,
            silence: SILENCE,
            silent_since: epoch,
        }
    }

    /// From now on devices have these faults, instead of earlier ones.
    pub fn inject(&mut self, faults: Vec<Fault>) {
        self.faults = Faults::new(faults, self.devices.len());
    }

    /// From now on host memory is allocated between guard zones; see [`super::guarded`].
    pub fn guard_host_memory(&mut self, exact: Exact) {
        self.guards = Some(exact);
        self.spare.clear();
    }

    /// The shift of the next host allocation: 0 and [`SHIFT`] alternate. It is
    /// always 0 beside a GPU that computes in host memory, which may need whole
    /// pages.
    fn next_shift(&mut self) -> u64 {
        match self.has_gpu_in_host_memory() {
            true => 0,
            false => {
                let next = SHIFT - self.shift;
                std::mem::replace(&mut self.shift, next)
            }
        }
    }

    /// The backend that pins host memory for its devices, if one does.
    fn pinning(&self) -> Option<usize> {
        (self.backends.iter()).position(|backend| backend.pins_host_memory())
    }

    /// Allocates from a backend, from `shift` after the begin of what it gives.
    fn allocate(
        &mut self,
        backend: usize,
        bytes: u64,
        shift: u64,
    ) -> Result<HostRegion, RuntimeError> {
        let unknown = RuntimeError::Unknown { what: "device" };
        let backend = self.backends.get_mut(backend).ok_or(unknown)?;
        let whole = backend.alloc_host(bytes.saturating_add(shift))?;
        Ok(whole.from(shift))
    }

    /// Whether a GPU computes in host memory.
    fn has_gpu_in_host_memory(&self) -> bool {
        let in_place = |d: &Device| d.kind == DeviceKind::Gpu && d.shares_host_memory;
        self.devices.iter().any(in_place)
    }

    /// Whether a command uses a part of this host memory and may not have ended.
    fn is_used(&self, wanted: &HostSpan) -> bool {
        self.uses().any(|span| span.overlaps(wanted))
    }

    /// The host memory that commands in flight use.
    fn uses(&self) -> impl Iterator<Item = &HostSpan> {
        let in_flight = self.in_flight.values().flat_map(|command| &command.uses);
        let uncovered = self.uncovered.values().flatten().map(|(_, span)| span);
        in_flight.chain(uncovered)
    }

    /// A device's backend, and its id there.
    ///
    /// # Errors
    /// For a device that does not exist, or whose injected loss was reported.
    fn locate(&self, device: DeviceId) -> Result<(usize, DeviceId), RuntimeError> {
        if self.faults.refuses(device) {
            return Err(RuntimeError::DeviceLost {
                device: self.devices[device.0].name.clone(),
                why: faults::LOST.to_owned(),
            });
        }
        let found = self.local_ids.get(device.0).copied();
        found.ok_or(RuntimeError::Unknown { what: "device" })
    }

    /// A queue's device.
    fn device_of(&self, queue: QueueId) -> Result<DeviceId, RuntimeError> {
        let device = self.queues.get(&queue).copied();
        device.ok_or(RuntimeError::Unknown { what: "queue" })
    }

    /// Takes in what has completed so far.
    fn drain(&mut self) {
        while let Ok(completion) = self.completions.try_recv() {
            self.take_in(completion);
        }
    }

    /// Has every backend poll for ends that no driver notifies of; true while
    /// there is more to poll for.
    fn poll(&mut self) -> bool {
        let polls = self.backends.iter_mut().map(|backend| backend.poll());
        polls.fold(false, |more, polling| more | polling)
    }

    /// A completion, if one is there; else yields the core for a moment.
    fn try_receive(&self) -> Result<Completion, RecvTimeoutError> {
        self.completions.try_recv().map_err(|error| match error {
            TryRecvError::Empty => {
                std::thread::yield_now();
                RecvTimeoutError::Timeout
            }
            TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
        })
    }

    /// Waits for a completion and takes it in, or has the devices inspected after a long
    /// silence. `false` if nothing came until the deadline.
    ///
    /// # Errors
    /// When every backend has ended.
    fn receive(&mut self, deadline: Option<Instant>) -> Result<bool, RuntimeError> {
        let suspicious = self.silent_since + self.silence;
        let until = deadline.map_or(suspicious, |deadline| deadline.min(suspicious));
        let received = if self.poll() {
            self.try_receive()
        } else {
            self.completions.recv_deadline(until)
        };
        match received {
            Ok(completion) => self.take_in(completion),
            Err(RecvTimeoutError::Timeout) if Instant::now() < until => {}
            Err(RecvTimeoutError::Timeout) if deadline.is_some_and(|d| d <= until) => {
                return Ok(false);
            }
            Err(RecvTimeoutError::Timeout) => {
                for backend in &mut self.backends {
                    backend.inspect();
                }
                self.silent_since = Instant::now();
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(RuntimeError::Call {
                    device: "every device".to_owned(),
                    call: "waiting for a completion",
                    why: format!(
                        "all backends have ended with {} commands in flight",
                        self.in_flight.len()
                    ),
                });
            }
        }
        Ok(true)
    }

    /// Takes in a backend's completion, and sends the commands that it releases.
    fn take_in(&mut self, mut completion: Completion) {
        let Some(command) = self.in_flight.remove(&completion.event) else {
            // Nothing that was submitted here; it must not count twice.
            return;
        };
        completion.queue = command.queue;
        completion.device = command.device;
        completion.queued = command.queued;
        self.forget_uses(completion.queue, completion.event);
        self.silent_since = Instant::now();
        if completion.status == Status::Done
            && !self.faults.is_empty()
            && let Some(status) = self.faults.overtake(completion.device, self.now())
        {
            completion.status = status;
        }
        let failed = completion.status != Status::Done;
        self.order.ended(completion.event, failed);
        self.deliver(command.role, completion);
        self.advance();
    }

    /// A command without an event of the driver's own has ended by itself.
    fn forget_uses(&mut self, queue: QueueId, event: EventId) {
        if let Some(uses) = self.uncovered.get_mut(&queue) {
            uses.retain(|(own, _)| *own != Some(event));
        }
    }

    /// Sends, or fails, every held command that is due.
    fn advance(&mut self) {
        while let Some(step) = self.order.next() {
            match step {
                Step::Send { event, held, wait } => {
                    let sent = self.send(event, held.command.clone(), &wait);
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
    ) -> Result<(), RuntimeError> {
        let unknown = RuntimeError::Unknown { what: "queue" };
        let InFlight { queue, device, .. } = self.in_flight.get(&event).ok_or(unknown)?;
        let (queue, (backend, _)) = (*queue, self.locate(*device)?);
        self.backends[backend].submit(queue, command, wait, Some(event))
    }

    /// Ends a command that its backend never got or refused.
    fn fail(&mut self, event: EventId, held: Held) {
        let Some(command) = self.in_flight.remove(&event) else {
            return;
        };
        self.forget_uses(command.queue, event);
        self.order.ended(event, true);
        let owner = (command.device, command.queue);
        let completion = Completion::of(&held.command, event, owner, command.queued);
        let status = held.refusal.unwrap_or(Status::Skipped);
        self.deliver(command.role, completion.not_run(self.now(), status));
    }

    fn release(&mut self, released: Released) {
        match released {
            Released::Host(memory) => {
                for backend in &mut self.backends {
                    backend.forget_host(memory);
                }
            }
            Released::Buffer(buffer) => {
                if let Some(own) = self.buffers.remove(&buffer) {
                    let (backend, _) = self.local_ids[own.device.0];
                    self.backends[backend].free(buffer);
                }
            }
            Released::Queue(queue, backend) => {
                self.order.close(queue);
                self.backends[backend].free_queue(queue);
                // It has waited for the commands that it got without an event.
                if let Some(uses) = self.uncovered.get_mut(&queue)
                    && self.backends[backend].can_omit_events()
                {
                    uses.retain(|(event, _)| event.is_some());
                }
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

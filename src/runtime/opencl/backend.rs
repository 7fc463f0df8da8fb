//! The backend: opening devices, and the [`Backend`] trait.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cl3::command_queue::finish;
use cl3::types::cl_event;
use crossbeam_channel::{Receiver, Sender, unbounded};

use super::batch::Batch;
use super::bridge::bridge;
use super::completion::{Ended, Outlets, Slot, Token};
use super::device::{OpenDevice, new_queue};
use super::failure::Failures;
use super::flight::Flight;
use super::handle::{Event, LETTING_GO, Queue, settle};
use super::launch::Site;
use super::memory::{pageable, pinned};
use super::open::open_devices;
use super::partition::Selected;
use super::program::Programs;
use super::queue::{Buffer, Events, Memories, OpenQueue};
use super::repeat::Repeats;
use super::watch::Watch;
use crate::codelet::{BufferId, Codelet, HostMemoryId, KernelArgument, Memory, OpenClKernel};
use crate::machine::Device;
use crate::runtime::{
    Backend, Command, Completion, DeviceId, EventId, HostRegion, IdMap, Nanos, Notice, QueueId,
    RuntimeError, Stages, Status, Tag,
};

/// How long a backend that is dropped waits for the last callbacks.
const LAST_CALLBACKS: Duration = Duration::from_millis(200);

/// OpenCL devices, chosen when it was opened.
pub struct OpenClBackend {
    infos: Vec<Device>,
    devices: Vec<OpenDevice>,
    /// One for each platform in use.
    contexts: Vec<Programs>,
    queues: IdMap<QueueId, OpenQueue>,
    memories: Memories,
    repeats: Repeats,
    /// The commands in flight.
    live: IdMap<EventId, Flight>,
    /// Freed queues and their last events, which a driver's thread may still
    /// be looking at, and since when.
    leaving: VecDeque<(Instant, Arc<Queue>, Option<Arc<Event>>)>,
    /// The commands of devices that are watched.
    watch: Watch,
    ended: Receiver<Ended>,
    outlets: Outlets,
    /// What is not flushed yet.
    batch: Batch,
    /// Spent in calls that enqueue.
    driver_time: Duration,
}

impl OpenClBackend {
    /// Opens these devices; the order is that of their [`DeviceId`]s.
    /// Completions go to `completions`, with times counted from `epoch`.
    ///
    /// # Errors
    /// When there is no OpenCL, no such device, or a device cannot be divided
    /// as is asked; when two selections of one device would share compute
    /// units; and when a driver refuses.
    pub fn open(
        selection: &[Selected],
        completions: Sender<Completion>,
        epoch: Instant,
    ) -> Result<Self, RuntimeError> {
        let (devices, contexts) = open_devices(selection, epoch)?;
        let (sender, ended) = unbounded();
        Ok(Self {
            infos: devices.iter().map(|d| d.info.clone()).collect(),
            devices,
            contexts: contexts.into_iter().map(Programs::new).collect(),
            queues: IdMap::default(),
            memories: Memories::default(),
            repeats: Repeats::default(),
            live: IdMap::default(),
            leaving: VecDeque::new(),
            watch: Watch::default(),
            ended,
            outlets: Outlets {
                completions,
                ended: sender,
                failures: Arc::new(Failures::default()),
            },
            batch: Batch::default(),
            driver_time: Duration::ZERO,
        })
    }

    fn device(&mut self, id: DeviceId) -> Result<&mut OpenDevice, RuntimeError> {
        self.devices
            .get_mut(id.0)
            .ok_or(RuntimeError::Unknown { what: "device" })
    }

    /// Lets go of what ended commands used. An event that is no longer known
    /// has ended, so nobody need wait for it.
    fn retire(&mut self) {
        for ended in self.ended.try_iter() {
            let flight = self.live.remove(&ended.event);
            // The last command of a queue that was freed takes it along.
            if let Some(flight) = flight.filter(|f| Arc::strong_count(&f.queue) == 1) {
                let (queue, event) = (flight.queue, flight.event);
                self.leaving.push_back((Instant::now(), queue, Some(event)));
            }
        }
        while let Some((since, ..)) = self.leaving.front() {
            if since.elapsed() < LETTING_GO {
                break;
            }
            self.leaving.pop_front();
        }
    }

    /// The events to wait for, in terms of a context.
    fn wait_list(&mut self, wait: &[EventId], to: usize) -> Result<Vec<Arc<Event>>, RuntimeError> {
        let context = self.devices[to].context;
        let mut events = Vec::with_capacity(wait.len());
        for id in wait {
            let Some(flight) = self.live.get_mut(id) else {
                continue;
            };
            if flight.context == context {
                events.push(Arc::clone(&flight.event));
                continue;
            }
            let here = &self.contexts[context].context;
            let user = bridge(*id, &flight.event, here, &self.outlets.failures)
                .map_err(|code| self.devices[to].shared.failed("clCreateUserEvent", code))?;
            flight.bridges.push(Arc::clone(&user));
            events.push(user);
        }
        Ok(events)
    }

    /// Enqueues a command, and sees to it that its completion comes if it is
    /// `heard` of.
    fn enqueue(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        heard: Option<(Tag, EventId)>,
    ) -> Result<(), RuntimeError> {
        let unknown = RuntimeError::Unknown { what: "queue" };
        let index = self.queues.get(&queue).map(|open| open.device);
        let index = index.ok_or(unknown)?;
        self.devices[index].shared.check()?;
        let events = self.wait_list(wait, index)?;
        let raw: Vec<cl_event> = events.iter().map(|event| event.raw()).collect();
        let device = &self.devices[index];
        let now = match heard {
            Some(_) => device.shared.clock.now(),
            None => 0,
        };
        let mixed = command.is_mixed().then(|| Stages::around(&command, now));
        let mut heard = heard.map(|(tag, event)| Completion {
            stages: mixed,
            ..Completion::of(&command, event, (DeviceId(index), queue), tag, now)
        });
        let Some(open) = self.queues.get_mut(&queue) else {
            return Err(RuntimeError::Unknown { what: "queue" });
        };
        if open.poisoned.load(Ordering::Acquire) || self.outlets.failures.any(wait) {
            open.poisoned.store(true, Ordering::Release);
            if let Some(mut completion) = heard.take() {
                self.outlets.failures.note(completion.event);
                completion.status = Status::Skipped;
                // A receiver that is gone has no more interest in completions.
                let _ = self.outlets.completions.send(completion);
            }
            return Ok(());
        }
        let begun = Instant::now();
        let mut site = Site {
            device,
            devices: &self.devices,
            programs: &mut self.contexts[device.context],
            memories: &self.memories,
        };
        let enqueued = match command {
            Command::Repeat(launch) => {
                let repeats = &mut self.repeats;
                open.repeat(&launch, heard.is_some(), repeats, &mut site, &raw)
            }
            Command::Series(commands) => open.series(&commands, heard.is_some(), &mut site, &raw),
            single => open.single(&single, heard.is_some(), &mut site, &raw),
        }?;
        // The command runs whatever comes next, so what it uses must be kept.
        if self.batch.add(&open.raw, index) {
            device.flush(&open.raw);
        }
        self.driver_time += begun.elapsed();
        open.owed.add(enqueued.keeps, events, wait);
        let Some(Events {
            last,
            timed,
            kernels,
        }) = enqueued.events
        else {
            return Ok(());
        };
        open.last = Some(Arc::clone(&last));
        let Some(completion) = heard else {
            open.owed.keeps.push(last);
            return Ok(());
        };
        // What has no event has ended when this has.
        let owed = std::mem::take(&mut open.owed);
        let token = Token {
            completion,
            waits: owed.waits,
            timed: open.stamps.then_some(timed),
            kernels: kernels.filter(|_| open.stamps),
            device: Arc::clone(&device.shared),
            poisoned: Arc::clone(&open.poisoned),
            keeps: owed.keeps,
            outlets: self.outlets.clone(),
        };
        let event = token.completion.event;
        let slot = if device.watched {
            let (slot, last) = (Arc::new(Slot::from(token)), Arc::clone(&last));
            self.watch.add(&open.raw, index, last, Arc::clone(&slot));
            slot
        } else {
            token.attach(&last)
        };
        let flight = Flight {
            slot,
            event: last,
            device: index,
            context: device.context,
            queue: Arc::clone(&open.raw),
            bridges: Vec::new(),
        };
        self.live.insert(event, flight);
        Ok(())
    }
}

impl Backend for OpenClBackend {
    fn devices(&self) -> &[Device] {
        &self.infos
    }

    fn pins_host_memory(&self) -> bool {
        self.infos.iter().any(|info| !info.shares_host_memory)
    }

    fn alloc_host(&mut self, bytes: u64) -> Result<HostRegion, RuntimeError> {
        let apart = self.devices.iter().find(|d| !d.info.shares_host_memory);
        let region = match apart {
            Some(device) => pinned(device, &self.contexts[device.context].context, bytes),
            None => pageable(bytes),
        }?;
        self.memories.hosts.insert(region.id, region.clone());
        Ok(region)
    }

    fn adopt_host(&mut self, region: HostRegion) -> Result<(), RuntimeError> {
        self.memories.hosts.insert(region.id, region);
        Ok(())
    }

    fn forget_host(&mut self, memory: HostMemoryId) {
        self.retire();
        self.repeats.forget(Memory::Host(memory));
        for queue in self.queues.values_mut() {
            queue.views.remove(&memory);
        }
        self.memories.hosts.remove(&memory);
    }

    fn alloc(&mut self, device: DeviceId, bytes: u64) -> Result<BufferId, RuntimeError> {
        self.retire();
        let context = self.device(device)?.context;
        let context = Arc::clone(&self.contexts[context].context);
        let mem = self.device(device)?.alloc(&context, bytes)?;
        let id = BufferId::fresh();
        let buffer = Buffer {
            mem: Arc::new(mem),
            device: device.0,
            bytes,
        };
        self.memories.buffers.insert(id, buffer);
        Ok(id)
    }

    fn free(&mut self, buffer: BufferId) {
        self.retire();
        self.repeats.forget(Memory::Device(buffer));
        if let Some(buffer) = self.memories.buffers.remove(&buffer) {
            self.devices[buffer.device].freed(buffer.bytes);
        }
    }

    fn open_queue(&mut self, device: DeviceId, profiling: bool) -> Result<QueueId, RuntimeError> {
        let open = self.device(device)?;
        open.shared.check()?;
        let (id, shared, context) = (open.id, Arc::clone(&open.shared), open.context);
        let raw = new_queue(&self.contexts[context].context, id, &shared, profiling)?;
        let queue = QueueId::fresh();
        self.queues
            .insert(queue, OpenQueue::new(device.0, raw, profiling));
        Ok(queue)
    }

    fn load(&mut self, queue: QueueId, codelet: &Codelet) -> Result<(), RuntimeError> {
        let unknown = RuntimeError::Unknown { what: "queue" };
        let index = self.queues.get(&queue).map(|open| open.device);
        let index = index.ok_or(unknown)?;
        let device = &self.devices[index];
        device.shared.check()?;
        let Some(kernel) = &codelet.opencl else {
            return Err(RuntimeError::NoImplementation {
                device: device.info.name.clone(),
                codelet: codelet.name.to_string(),
            });
        };
        let mut site = Site {
            device,
            devices: &self.devices,
            programs: &mut self.contexts[device.context],
            memories: &self.memories,
        };
        let Some(open) = self.queues.get_mut(&queue) else {
            return Ok(());
        };
        open.load(kernel, &mut site)
    }

    fn driver_time(&self) -> Nanos {
        self.driver_time.as_nanos() as Nanos
    }

    fn arguments(
        &mut self,
        device: DeviceId,
        kernel: &OpenClKernel,
    ) -> Result<Vec<KernelArgument>, RuntimeError> {
        let context = self.device(device)?.context;
        self.contexts[context].arguments(kernel, &self.devices[device.0])
    }

    /// The commands on it keep the driver's queue.
    fn free_queue(&mut self, queue: QueueId) {
        self.retire();
        if let Some(mut open) = self.queues.remove(&queue) {
            open.settle(&self.devices[open.device].shared);
            self.watch.close(&open.raw);
            self.leaving
                .push_back((Instant::now(), open.raw, open.last));
        }
    }

    fn submit(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        tag: Tag,
        event: EventId,
    ) -> Result<(), RuntimeError> {
        self.retire();
        self.enqueue(queue, command, wait, Some((tag, event)))
    }

    fn can_omit_events(&self) -> bool {
        true
    }

    fn submit_without_event(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        _tag: Tag,
    ) -> Result<(), RuntimeError> {
        self.enqueue(queue, command, wait, None)
    }

    fn finish(&mut self, queue: QueueId) {
        if let Some(open) = self.queues.get_mut(&queue) {
            open.settle(&self.devices[open.device].shared);
        }
    }

    fn notify(&mut self, notice: Notice) {
        match notice {
            Notice::BatchBegins => self.batch.begin(),
            Notice::BatchEnds => {
                let begun = Instant::now();
                for (queue, device) in self.batch.end() {
                    self.devices[device].flush(&queue);
                }
                self.driver_time += begun.elapsed();
            }
            Notice::StepBegins(_) | Notice::DrivingBegins | Notice::DrivingEnds => {}
        }
    }

    fn poll(&mut self) -> bool {
        self.watch.look(&self.devices)
    }

    fn inspect(&mut self) {
        self.retire();
        let mut flights: Vec<_> = self.live.iter().collect();
        // In the order of submission, in which a queue's commands end.
        flights.sort_by_key(|(event, _)| **event);
        for device in &self.devices {
            device.probe();
        }
        let mut ended = Vec::new();
        for (_, flight) in flights {
            if let Some(code) = flight.code(&self.devices[flight.device]) {
                flight.slot.deliver(code);
                ended.push(flight);
            }
        }
        // Only now, for what they let go completes at once.
        for flight in ended {
            flight.cross();
        }
    }
}

impl Drop for OpenClBackend {
    /// Waits for what is still running, so that no driver thread works while
    /// the process ends, or with what was released.
    fn drop(&mut self) {
        self.retire();
        self.await_the_last();
        if self.live.is_empty() {
            // Buffers may keep their last events.
            self.memories = Memories::default();
            self.repeats = Repeats::default();
            let open = self.queues.values().map(|queue| &queue.last);
            let leaving = self.leaving.iter().map(|(_, _, last)| last);
            settle(open.chain(leaving).filter_map(|last| last.as_deref()));
        }
    }
}

impl OpenClBackend {
    /// Waits a while for the commands in flight.
    fn await_the_last(&mut self) {
        for open in self.queues.values_mut() {
            open.settle(&self.devices[open.device].shared);
        }
        if self.live.is_empty() {
            return;
        }
        for flight in self.live.values() {
            if self.devices[flight.device].shared.check().is_ok() {
                let _ = finish(flight.queue.raw());
            }
        }
        self.poll();
        let deadline = Instant::now() + LAST_CALLBACKS;
        while !self.live.is_empty() {
            let Ok(ended) = self.ended.recv_deadline(deadline) else {
                return;
            };
            self.live.remove(&ended.event);
        }
    }
}

#[cfg(test)]
#[path = "apart_tests.rs"]
mod apart_tests;

#[cfg(test)]
#[path = "backend_tests.rs"]
mod tests;

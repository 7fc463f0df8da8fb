//! [`OpenClBackend`]: its state, and the [`Backend`] trait. Commands are enqueued in
//! `submit`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cl3::command_queue::finish;
use crossbeam_channel::{Receiver, Sender, unbounded};

use super::Selected;
use super::batch::Batch;
use super::completion::{Channels, Ended};
use super::device::{OpenDevice, new_queue};
use super::failure::Failures;
use super::handle::{Event, Queue, RELEASE_TIMEOUT, wait_for_release};
use super::in_flight::InFlight;
use super::launch::{LaunchEnv, implementation};
use super::memory::{pageable, pin_in_place, pinned};
use super::open::open_devices;
use super::polling::Polling;
use super::program::Programs;
use super::queue::{Buffer, Memories, OpenQueue};
use super::repeat::Repeats;
use crate::codelet::{BufferId, Codelet, HostMemoryId, KernelArgument, Memory, OpenClKernel};
use crate::machine::Device;
use crate::runtime::{
    Backend, Command, Completion, DeviceId, Devices, EventId, HostRegion, IdMap, Nanos, Notice,
    QueueId, QueueKind, RuntimeError,
};

/// How long a backend that is dropped waits for the last callbacks.
const LAST_CALLBACKS: Duration = Duration::from_millis(200);

/// OpenCL devices, chosen when it was opened.
pub struct OpenClBackend {
    pub(super) infos: Vec<Device>,
    pub(super) queues: IdMap<QueueId, OpenQueue>,
    pub(super) memories: Memories,
    pub(super) repeats: Repeats,
    /// The commands in flight.
    pub(super) in_flight: IdMap<EventId, InFlight>,
    /// Freed queues and their last events, which a driver's thread may still read,
    /// and since when.
    pub(super) closing: VecDeque<(Instant, Arc<Queue>, Option<Arc<Event>>)>,
    /// The commands of devices that are polled.
    pub(super) polling: Polling,
    pub(super) ended: Receiver<Ended>,
    pub(super) channels: Channels,
    /// The queues that are not flushed yet.
    pub(super) batch: Batch,
    /// Time spent in driver calls that enqueue.
    pub(super) driver_time: Duration,
    /// One for each platform in use.
    pub(super) contexts: Vec<Programs>,
    /// Released last, as fields are in this order: PoCL reads the device of a queue or an
    /// event that it releases, and a context alone does not keep a sub-device that long.
    pub(super) devices: Vec<OpenDevice>,
}

/// Opens these devices; see [`OpenClBackend::open`].
///
/// # Errors
/// Those of [`OpenClBackend::open`].
pub fn open(
    selection: &[Selected],
    completions: Sender<Completion>,
    epoch: Instant,
) -> Result<Box<dyn Backend>, RuntimeError> {
    Ok(Box::new(OpenClBackend::open(
        selection,
        completions,
        epoch,
    )?))
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
            in_flight: IdMap::default(),
            closing: VecDeque::new(),
            polling: Polling::default(),
            ended,
            channels: Channels {
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

    /// The index of a queue's device.
    pub(super) fn device_of(&self, queue: QueueId) -> Result<usize, RuntimeError> {
        let device = self.queues.get(&queue).map(|open| open.device);
        device.ok_or(RuntimeError::Unknown { what: "queue" })
    }

    /// Releases the resources of ended commands. An event that is not in flight has
    /// ended, so no command needs to wait for it.
    fn retire(&mut self) {
        for ended in self.ended.try_iter() {
            let command = self.in_flight.remove(&ended.event);
            // The last command of a freed queue releases the queue.
            if let Some(command) = command.filter(|f| Arc::strong_count(&f.queue) == 1) {
                let (queue, event) = (command.queue, command.event);
                self.closing.push_back((Instant::now(), queue, Some(event)));
            }
        }
        while let Some((since, ..)) = self.closing.front() {
            if since.elapsed() < RELEASE_TIMEOUT {
                break;
            }
            self.closing.pop_front();
        }
    }
}

impl Devices for OpenClBackend {
    fn devices(&self) -> &[Device] {
        &self.infos
    }

    fn alloc(&mut self, device: DeviceId, bytes: u64) -> Result<BufferId, RuntimeError> {
        self.retire();
        let context = self.device(device)?.context;
        let raw = Arc::clone(&self.contexts[context].context);
        let mem = self.device(device)?.alloc(&raw, bytes)?;
        let id = BufferId::fresh();
        let buffer = Buffer {
            mem: Arc::new(mem),
            device: device.0,
            context,
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

    fn open_queue(&mut self, device: DeviceId, kind: QueueKind) -> Result<QueueId, RuntimeError> {
        let open = self.device(device)?;
        open.shared.check()?;
        let (id, shared, context) = (open.id, Arc::clone(&open.shared), open.context);
        let profiling = kind == QueueKind::Profiled && open.has_stamps;
        let raw = new_queue(&self.contexts[context].context, id, &shared, profiling)?;
        let queue = QueueId::fresh();
        self.queues
            .insert(queue, OpenQueue::new(device.0, raw, profiling));
        Ok(queue)
    }

    fn load(&mut self, queue: QueueId, codelet: &Codelet) -> Result<(), RuntimeError> {
        let device = &self.devices[self.device_of(queue)?];
        device.shared.check()?;
        let kernel = implementation(codelet, device)?;
        let mut env = LaunchEnv {
            device,
            devices: &self.devices,
            programs: &mut self.contexts[device.context],
            memories: &self.memories,
        };
        let Some(open) = self.queues.get_mut(&queue) else {
            return Ok(());
        };
        open.load(kernel, &mut env).map(|_| ())
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

    /// The commands on it keep the driver's queue alive.
    fn free_queue(&mut self, queue: QueueId) {
        self.retire();
        if let Some(mut open) = self.queues.remove(&queue) {
            open.finish(&self.devices[open.device].shared);
            self.polling.close(&open.raw);
            self.closing
                .push_back((Instant::now(), open.raw, open.last));
        }
    }

    fn submit(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        event: Option<EventId>,
    ) -> Result<(), RuntimeError> {
        if event.is_some() {
            self.retire();
        }
        self.enqueue(queue, command, wait, event)
    }

    fn finish(&mut self, queue: QueueId) {
        if let Some(open) = self.queues.get_mut(&queue) {
            open.finish(&self.devices[open.device].shared);
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
            Notice::PhaseBegins(_) | Notice::DrivingBegins | Notice::DrivingEnds => {}
        }
    }
}

impl Backend for OpenClBackend {
    fn pins_host_memory(&self) -> bool {
        self.infos.iter().any(|info| !info.shares_host_memory)
    }

    fn alloc_host(&mut self, bytes: u64) -> Result<HostRegion, RuntimeError> {
        let discrete = self.devices.iter().find(|d| !d.info.shares_host_memory);
        let region = match discrete {
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

    fn pin_host(&mut self, memory: HostMemoryId) {
        let Some(region) = self.memories.hosts.get_mut(&memory) else {
            return;
        };
        // Of each context once: its devices share what is pinned.
        let wanting = self.contexts.iter().enumerate().filter(|(index, _)| {
            let mut devices = self.devices.iter();
            devices.any(|d| d.context == *index && !d.info.shares_host_memory)
        });
        let contexts = wanting.map(|(_, programs)| &*programs.context);
        pin_in_place(region, contexts);
    }

    fn forget_host(&mut self, memory: HostMemoryId) {
        self.retire();
        self.repeats.forget(Memory::Host(memory));
        for queue in self.queues.values_mut() {
            queue.views.remove(&memory);
        }
        self.memories.hosts.remove(&memory);
    }

    fn copies_directly(&self, from: DeviceId, to: DeviceId) -> bool {
        self.devices[from.0].context == self.devices[to.0].context
    }

    fn can_omit_events(&self) -> bool {
        true
    }

    fn poll(&mut self) -> bool {
        self.polling.poll(&self.devices)
    }

    fn inspect(&mut self) {
        self.retire();
        let mut commands: Vec<_> = self.in_flight.iter().collect();
        // In the order of submission, in which a queue's commands end.
        commands.sort_by_key(|(event, _)| **event);
        for device in &self.devices {
            device.probe();
        }
        let mut ended = Vec::new();
        for (_, command) in commands {
            if let Some(code) = command.code(&self.devices[command.device]) {
                command.cell.deliver(code);
                ended.push(command);
            }
        }
        // Only now, since the commands that this releases may complete at once.
        for command in ended {
            command.release_bridges();
        }
    }
}

impl Drop for OpenClBackend {
    /// Waits for the commands in flight, so that no driver thread works while the
    /// process ends, or with released objects.
    fn drop(&mut self) {
        self.retire();
        self.finish_all();
        if self.in_flight.is_empty() {
            // Buffers may keep their last events.
            self.memories = Memories::default();
            self.repeats = Repeats::default();
            let open = self.queues.values().map(|queue| &queue.last);
            let closing = self.closing.iter().map(|(_, _, last)| last);
            wait_for_release(open.chain(closing).filter_map(|last| last.as_deref()));
        }
    }
}

impl OpenClBackend {
    /// Waits a while for the commands in flight.
    fn finish_all(&mut self) {
        for open in self.queues.values_mut() {
            open.finish(&self.devices[open.device].shared);
        }
        if self.in_flight.is_empty() {
            return;
        }
        for command in self.in_flight.values() {
            if self.devices[command.device].shared.check().is_ok() {
                let _ = finish(command.queue.raw());
            }
        }
        self.poll();
        let deadline = Instant::now() + LAST_CALLBACKS;
        while !self.in_flight.is_empty() {
            let Ok(ended) = self.ended.recv_deadline(deadline) else {
                return;
            };
            self.in_flight.remove(&ended.event);
        }
    }
}

#[cfg(test)]
#[path = "queue_program_tests.rs"]
mod queue_program_tests;

#[cfg(test)]
#[path = "backend_tests.rs"]
mod tests;

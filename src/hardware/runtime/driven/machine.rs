//! [`Machine`]: its state, and the [`Backend`] trait.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;

use super::{Buffer, DeviceOf, Driver, Here, KeepAlive, Memories, at, unknown};
use crate::codelet::{BufferId, Codelet, HostMemoryId, KernelArgument, Memory, OpenClKernel};
use crate::machine::Device;
use crate::runtime::host::map_memory;
use crate::runtime::{
    Backend, Command, Comparison, Completion, DeviceId, Devices, EventId, HostRegion, IdMap, Nanos,
    Notice, PeerPath, QueueId, QueueKind, RuntimeError,
};

/// How long a machine that is dropped waits for what has ended to be told.
const LAST_NOTICES: Duration = Duration::from_millis(200);

/// Devices of a driver, chosen when it was opened.
pub(in crate::runtime) struct Machine<D: Driver> {
    infos: Vec<Device>,
    /// What is prepared for queues is released before them.
    pub driver: D,
    pub queues: IdMap<QueueId, OpenQueue<D>>,
    /// Freed queues with commands under way.
    pub(super) closing: Vec<OpenQueue<D>>,
    pub memories: Memories<D::Memory>,
    /// The commands under way that have an event.
    pub(super) in_flight: IdMap<EventId, InFlight<D>>,
    /// The commands that failed. A runtime sees few.
    pub(super) failed: HashSet<EventId>,
    pub(super) completions: Sender<Completion>,
    /// Whether several commands are being submitted, which need not start before all are.
    pub(super) is_batch: bool,
    /// Time spent in driver calls that enqueue.
    pub(super) driver_time: Duration,
    /// Released last, as fields are in this order.
    pub devices: Vec<DeviceOf<D>>,
}

impl<D: Driver> Machine<D> {
    /// A machine of these devices, in the order of their [`DeviceId`]s.
    pub(in crate::runtime) fn new(
        driver: D,
        devices: Vec<DeviceOf<D>>,
        completions: Sender<Completion>,
    ) -> Self {
        Self {
            infos: devices.iter().map(|device| device.info.clone()).collect(),
            driver,
            queues: IdMap::default(),
            closing: Vec::new(),
            memories: Memories::default(),
            in_flight: IdMap::default(),
            failed: HashSet::new(),
            completions,
            is_batch: false,
            driver_time: Duration::ZERO,
            devices,
        }
    }

    /// Waits until the commands of a queue that no event covers have ended.
    fn finish_uncovered(driver: &mut D, queue: &mut OpenQueue<D>, device: &DeviceOf<D>) {
        if queue.uncovered.any && device.check().is_ok() {
            driver.synchronize(queue);
        }
        queue.uncovered = Uncovered::default();
    }
}

impl<D: Driver> Devices for Machine<D> {
    fn devices(&self) -> &[Device] {
        &self.infos
    }

    fn alloc(&mut self, device: DeviceId, bytes: u64) -> Result<BufferId, RuntimeError> {
        let open = self.devices.get_mut(device.0);
        let open = open.ok_or_else(|| unknown("device"))?;
        open.has_room(bytes)?;
        let buffer = Buffer {
            memory: Arc::new(self.driver.allocate(open, bytes)?),
            device: device.0,
            bytes,
        };
        open.allocated(bytes);
        let id = BufferId::fresh();
        self.memories.buffers.insert(id, buffer);
        Ok(id)
    }

    fn free(&mut self, buffer: BufferId) {
        self.driver
            .forget(Memory::Device(buffer), self.queues.values_mut());
        if let Some(buffer) = self.memories.buffers.remove(&buffer) {
            self.devices[buffer.device].freed(buffer.bytes);
        }
    }

    fn peer_path(&self, from: DeviceId, to: DeviceId) -> Option<PeerPath> {
        self.driver.peer_path(from, to)
    }

    fn open_queue(&mut self, device: DeviceId, kind: QueueKind) -> Result<QueueId, RuntimeError> {
        let open = at(&self.devices, device)?;
        open.check()?;
        let profiling = kind == QueueKind::Profiled && open.has_stamps;
        let own = self.driver.open_queue(open, profiling)?;
        let queue = QueueId::fresh();
        self.queues
            .insert(queue, OpenQueue::new(device.0, own, profiling));
        Ok(queue)
    }

    fn free_queue(&mut self, queue: QueueId) {
        if let Some(mut open) = self.queues.remove(&queue) {
            let device = &self.devices[open.device];
            Self::finish_uncovered(&mut self.driver, &mut open, device);
            match open.in_flight.is_empty() {
                true => self.driver.close(open),
                false => self.closing.push(open),
            }
        }
    }

    fn load(&mut self, queue: QueueId, codelet: &Codelet) -> Result<(), RuntimeError> {
        let queue = self.queues.get_mut(&queue);
        let queue = queue.ok_or_else(|| unknown("queue"))?;
        let index = queue.device;
        let device = &mut self.devices[index];
        device.check()?;
        let mut here = Here {
            index,
            device,
            queue,
            memories: &self.memories,
        };
        self.driver.load(&mut here, codelet)
    }

    fn know_implementations(&mut self, known: &[Comparison]) {
        self.driver.know_implementations(known);
    }

    fn implementations(&mut self) -> Vec<Comparison> {
        self.driver.implementations(&mut self.devices)
    }

    fn driver_time(&self) -> Nanos {
        self.driver_time.as_nanos() as Nanos
    }

    fn runs_graphs(&self, device: DeviceId) -> bool {
        at(&self.devices, device).is_ok_and(|device| self.driver.runs_graphs(device))
    }

    fn arguments(
        &mut self,
        device: DeviceId,
        kernel: &OpenClKernel,
    ) -> Result<Vec<KernelArgument>, RuntimeError> {
        self.driver.arguments(at(&self.devices, device)?, kernel)
    }

    fn submit(
        &mut self,
        queue: QueueId,
        command: Command,
        wait: &[EventId],
        event: Option<EventId>,
    ) -> Result<(), RuntimeError> {
        self.enqueue(queue, &command, wait, event)
    }

    fn finish(&mut self, queue: QueueId) {
        if let Some(open) = self.queues.get_mut(&queue) {
            let device = &self.devices[open.device];
            Self::finish_uncovered(&mut self.driver, open, device);
        }
    }

    fn notify(&mut self, notice: Notice) {
        match notice {
            Notice::BatchBegins => self.is_batch = true,
            Notice::BatchEnds => {
                self.is_batch = false;
                let begun = Instant::now();
                let open = self.queues.values_mut().chain(&mut self.closing);
                for queue in open.filter(|queue| queue.unflushed > 0) {
                    queue.unflushed = 0;
                    self.driver.flush(&self.devices[queue.device], queue);
                }
                self.driver_time += begun.elapsed();
            }
            Notice::HostMemoryOn(gpu) => self.driver.host_on(gpu),
            Notice::PhaseBegins(_) | Notice::DrivingBegins | Notice::DrivingEnds => {}
        }
    }
}

impl<D: Driver> Backend for Machine<D> {
    fn pins_host_memory(&self) -> bool {
        (self.devices.iter()).any(|device| !device.info.shares_host_memory)
    }

    fn alloc_host(&mut self, bytes: u64) -> Result<HostRegion, RuntimeError> {
        let mut devices = self.devices.iter();
        let region = match devices.find(|device| !device.info.shares_host_memory) {
            Some(device) => self.driver.pinned(device, bytes)?,
            None => map_memory("host", bytes)?,
        };
        self.memories.hosts.insert(region.id, region.clone());
        Ok(region)
    }

    fn adopt_host(&mut self, region: HostRegion) -> Result<(), RuntimeError> {
        self.memories.hosts.insert(region.id, region);
        Ok(())
    }

    fn pin_host(&mut self, memory: HostMemoryId) {
        if let Some(region) = self.memories.hosts.get_mut(&memory) {
            self.driver.pin_in_place(region, &self.devices);
        }
    }

    fn forget_host(&mut self, memory: HostMemoryId) {
        self.driver
            .forget(Memory::Host(memory), self.queues.values_mut());
        self.memories.hosts.remove(&memory);
    }

    fn copies_directly(&self, from: DeviceId, to: DeviceId) -> bool {
        self.driver.copies_directly(from, to, &self.devices)
    }

    fn can_omit_events(&self) -> bool {
        true
    }

    fn poll(&mut self) -> bool {
        self.complete(false)
    }

    fn inspect(&mut self) {
        for device in &self.devices {
            self.driver.probe(device);
        }
        self.complete(true);
    }
}

impl<D: Driver> Drop for Machine<D> {
    /// Waits a while for the commands under way, so that no thread of the driver works while the
    /// process ends, or with released objects.
    fn drop(&mut self) {
        for queue in self.queues.values_mut().chain(&mut self.closing) {
            let device = &self.devices[queue.device];
            Self::finish_uncovered(&mut self.driver, queue, device);
            if !queue.in_flight.is_empty() && device.check().is_ok() {
                self.driver.synchronize(queue);
            }
        }
        let deadline = Instant::now() + LAST_NOTICES;
        loop {
            self.complete(false);
            if self.in_flight.is_empty() || Instant::now() >= deadline {
                break;
            }
            std::thread::yield_now();
        }
        self.memories = Memories::default();
        self.driver.leave(self.queues.values());
    }
}

#[cfg(test)]
impl<D: Driver> Machine<D> {
    /// Puts a command on its way, alone on a queue of the first device, that ends with `last`, and
    /// of whose end nobody tells. For what waits for it, it is on the device of this index.
    pub fn pretend(
        &mut self,
        (event, waits): (EventId, &[EventId]),
        (own, device): (D::Queue, usize),
        last: &Arc<D::Event>,
    ) {
        use crate::runtime::Rows;
        use crate::runtime::command::Location;
        let id = QueueId::fresh();
        let end = Location::host(HostMemoryId::fresh(), 0);
        let command = Command::Copy {
            from: end,
            to: end,
            rows: Rows::one(0),
        };
        let mut queue = OpenQueue::new(0, own, true);
        queue.in_flight.push_back(super::Pending {
            completion: Completion::of(&command, event, (DeviceId(0), id), 5),
            waits: waits.to_vec(),
            last: Arc::clone(last),
            timed: Some([Arc::clone(last), Arc::clone(last)]),
            kernels: None,
            keep_alive: Vec::new(),
        });
        self.queues.insert(id, queue);
        let known = InFlight {
            id: event,
            queue: id,
            device,
            event: Arc::clone(last),
        };
        self.in_flight.insert(event, known);
    }

    /// Takes a command that is pretended for one that failed.
    pub fn fail(&mut self, event: EventId) {
        if let Some(known) = self.in_flight.remove(&event) {
            self.queues.remove(&known.queue);
        }
        self.failed.insert(event);
    }

    /// Whether a command failed.
    pub fn has_failed(&self, event: EventId) -> bool {
        self.failed.contains(&event)
    }
}

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

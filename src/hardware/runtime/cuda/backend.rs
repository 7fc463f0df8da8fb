//! [`CudaBackend`]: its state, and the [`Backend`] trait. Commands are enqueued in
//! `submit`, and their ends found in `polling`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;

use super::copy::{Buffer, Memories};
use super::device::{OpenDevice, peer_path};
use super::discover::start;
use super::graph::Graphs;
use super::handle::Stream;
use super::launch::Repeats;
use super::library::Libraries;
use super::library::choice::Choices;
use super::memory::{pin_in_place, pinned};
use super::polling::{InFlight, finish};
use super::program::Programs;
use super::queue::OpenQueue;
use super::serve::Measured;
use crate::codelet::{BufferId, Codelet, HostMemoryId, KernelArgument, Memory, OpenClKernel};
use crate::machine::Device;
use crate::runtime::{
    Backend, Command, Comparison, Completion, DeviceId, Devices, EventId, HostRegion, IdMap, Nanos,
    PeerPath, QueueId, QueueKind, RuntimeError,
};

/// GPUs through CUDA's driver, chosen when it was opened.
pub(super) struct CudaBackend {
    infos: Vec<Device>,
    /// Prepared launches, and with them the libraries' handles, are released before the
    /// streams that these were last given.
    pub(super) repeats: Repeats,
    /// CUDA's libraries; `None` if only our kernels are to serve.
    pub(super) libraries: Option<Libraries>,
    pub(super) queues: IdMap<QueueId, OpenQueue>,
    /// Freed queues with commands in flight.
    pub(super) closing: Vec<OpenQueue>,
    pub(super) memories: Memories,
    pub(super) graphs: Graphs,
    pub(super) programs: Programs,
    /// Which implementation serves.
    pub(super) choices: Choices,
    /// Launches that are measured.
    pub(super) measured: Vec<Measured>,
    /// The commands in flight that have an event.
    pub(super) in_flight: IdMap<EventId, InFlight>,
    /// The commands that failed. A runtime sees few.
    pub(super) failed: HashSet<EventId>,
    pub(super) completions: Sender<Completion>,
    /// Time spent in driver calls that enqueue.
    pub(super) driver_time: Duration,
    /// By source and target.
    peers: HashMap<(DeviceId, DeviceId), PeerPath>,
    /// Released last, as fields are in this order.
    pub(super) devices: Vec<OpenDevice>,
}

/// Opens these devices, by their numbers; the order is that of their [`DeviceId`]s.
/// `uses_libraries` says whether CUDA's libraries are searched for and tried beside our
/// kernels. Completions go to `completions`, with times counted from `epoch`.
///
/// # Errors
/// When there is no CUDA or no such device, and when the driver refuses.
pub fn open(
    devices: &[usize],
    uses_libraries: bool,
    completions: Sender<Completion>,
    epoch: Instant,
) -> Result<Box<dyn Backend>, RuntimeError> {
    let libraries = match uses_libraries {
        true => start().ok().map(Libraries::new),
        false => None,
    };
    let devices: Vec<OpenDevice> = (devices.iter())
        .map(|number| OpenDevice::open(*number, epoch))
        .collect::<Result<_, _>>()?;
    let mut peers = HashMap::new();
    for (i, from) in devices.iter().enumerate() {
        for (j, to) in devices.iter().enumerate() {
            if i != j
                && let Some(path) = peer_path(from, to)
            {
                peers.insert((DeviceId(i), DeviceId(j)), path);
            }
        }
    }
    Ok(Box::new(CudaBackend {
        infos: devices.iter().map(|device| device.info.clone()).collect(),
        queues: IdMap::default(),
        closing: Vec::new(),
        memories: Memories::default(),
        repeats: Repeats::default(),
        graphs: Graphs::default(),
        programs: Programs::default(),
        libraries,
        choices: Choices::default(),
        measured: Vec::new(),
        in_flight: IdMap::default(),
        failed: HashSet::new(),
        completions,
        driver_time: Duration::ZERO,
        peers,
        devices,
    }))
}

impl CudaBackend {
    fn device(&mut self, id: DeviceId) -> Result<&mut OpenDevice, RuntimeError> {
        let device = self.devices.get_mut(id.0);
        device.ok_or(RuntimeError::Unknown { what: "device" })
    }
}

impl Devices for CudaBackend {
    fn devices(&self) -> &[Device] {
        &self.infos
    }

    fn alloc(&mut self, device: DeviceId, bytes: u64) -> Result<BufferId, RuntimeError> {
        let open = self.device(device)?;
        let buffer = Buffer {
            memory: Arc::new(open.alloc(bytes)?),
            context: Arc::clone(&open.context),
            device: device.0,
            bytes,
        };
        let id = BufferId::fresh();
        self.memories.buffers.insert(id, buffer);
        Ok(id)
    }

    fn free(&mut self, buffer: BufferId) {
        self.repeats.forget(Memory::Device(buffer));
        self.graphs.forget(Memory::Device(buffer));
        if let Some(buffer) = self.memories.buffers.remove(&buffer) {
            self.devices[buffer.device].freed(buffer.bytes);
        }
    }

    fn peer_path(&self, from: DeviceId, to: DeviceId) -> Option<PeerPath> {
        self.peers.get(&(from, to)).copied()
    }

    fn open_queue(&mut self, device: DeviceId, kind: QueueKind) -> Result<QueueId, RuntimeError> {
        let open = self.device(device)?;
        open.check()?;
        let stream = Stream::new(&open.context);
        let stream = stream.map_err(|failure| open.failed(failure))?;
        let queue = QueueId::fresh();
        let profiling = kind == QueueKind::Profiled;
        self.queues
            .insert(queue, OpenQueue::new(device.0, stream, profiling));
        Ok(queue)
    }

    fn free_queue(&mut self, queue: QueueId) {
        if let Some(mut open) = self.queues.remove(&queue) {
            open.finish();
            if !open.in_flight.is_empty() {
                self.closing.push(open);
            }
        }
    }

    fn load(&mut self, queue: QueueId, codelet: &Codelet) -> Result<(), RuntimeError> {
        let unknown = RuntimeError::Unknown { what: "queue" };
        let index = self.queues.get(&queue).ok_or(unknown)?.device;
        let device = &mut self.devices[index];
        device.check()?;
        if codelet.opencl.is_none() && codelet.library.is_none() {
            return Err(RuntimeError::NoImplementation {
                device: device.info.name.clone(),
                codelet: codelet.name.to_string(),
            });
        }
        for source in codelet.opencl.iter().flat_map(OpenClKernel::kernels) {
            self.programs.kernel(source, device)?;
        }
        if let (Some(libraries), Some(of)) = (&mut self.libraries, &codelet.library) {
            // A library that cannot be used is reported when a launch would use it.
            if libraries.ready(of.library, index, device).is_ok() {
                for source in &of.kernels {
                    self.programs.kernel(source, device)?;
                }
            }
        }
        Ok(())
    }

    fn know_implementations(&mut self, known: &[Comparison]) {
        self.choices.know(known);
    }

    fn implementations(&mut self) -> Vec<Comparison> {
        self.measure();
        let names: Vec<&str> = self
            .infos
            .iter()
            .map(|device| device.name.as_str())
            .collect();
        self.choices.comparisons(&names)
    }

    fn driver_time(&self) -> Nanos {
        self.driver_time.as_nanos() as Nanos
    }

    fn runs_graphs(&self, device: DeviceId) -> bool {
        let device = self.devices.get(device.0);
        device.is_some_and(|device| device.runs_graphs)
    }

    fn arguments(
        &mut self,
        device: DeviceId,
        kernel: &OpenClKernel,
    ) -> Result<Vec<KernelArgument>, RuntimeError> {
        let unknown = RuntimeError::Unknown { what: "device" };
        let device = self.devices.get(device.0).ok_or(unknown)?;
        self.programs.arguments(&kernel.source, device)
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
            open.finish();
        }
    }
}

impl Backend for CudaBackend {
    fn pins_host_memory(&self) -> bool {
        true
    }

    fn alloc_host(&mut self, bytes: u64) -> Result<HostRegion, RuntimeError> {
        let unknown = RuntimeError::Unknown { what: "device" };
        let device = self.devices.first().ok_or(unknown)?;
        let region = pinned(&device.context, bytes)?;
        self.memories.hosts.insert(region.id, region.clone());
        Ok(region)
    }

    fn adopt_host(&mut self, region: HostRegion) -> Result<(), RuntimeError> {
        self.memories.hosts.insert(region.id, region);
        Ok(())
    }

    fn pin_host(&mut self, memory: HostMemoryId) {
        let device = self.devices.first();
        if let Some((region, device)) = self.memories.hosts.get_mut(&memory).zip(device) {
            // Where the driver refuses, copies are those of unpinned memory.
            let _ = pin_in_place(region, &device.context);
        }
    }

    fn forget_host(&mut self, memory: HostMemoryId) {
        self.repeats.forget(Memory::Host(memory));
        self.memories.hosts.remove(&memory);
    }

    fn copies_directly(&self, from: DeviceId, to: DeviceId) -> bool {
        from == to || self.peers.contains_key(&(from, to))
    }

    fn can_omit_events(&self) -> bool {
        true
    }

    fn poll(&mut self) -> bool {
        self.complete()
    }
}

impl Drop for CudaBackend {
    /// Waits for the commands in flight, whose memory is released next.
    fn drop(&mut self) {
        finish(self.queues.values_mut().chain(&mut self.closing));
        self.complete();
    }
}

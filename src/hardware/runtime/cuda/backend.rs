//! [`Cuda`], the driver that serves the [`Machine`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::Sender;

use super::device::{CudaDevice, OpenDevice, peer_path};
use super::discover::start;
use super::graph::PreparedGraph;
use super::handle::{Event, Stream};
use super::launch::{LaunchEnv, Prepared, QueueMemory};
use super::library::Libraries;
use super::library::choice::Choices;
use super::managed::memory_on;
use super::memory::{Allocation, copy, pin_in_place, pinned};
use super::program::Programs;
use super::serve::Measured;
use crate::codelet::{Codelet, KernelArgument, Memory, OpenClKernel};
use crate::runtime::device_clock::Stamps;
use crate::runtime::driven::{
    self, Driver, Enqueued, InFlight, Machine, NotAwaited, Repeats, Wanted,
};
use crate::runtime::{
    Backend, Command, CommandGraph, Comparison, Completion, DeviceId, EventId, HostRegion, IdMap,
    Launch, Nanos, PeerPath, RuntimeError, Status,
};

/// GPUs through CUDA's driver.
pub(super) struct Cuda {
    /// Prepared launches, and with them the libraries' handles.
    pub(super) repeats: Repeats<Launch, Arc<Prepared>>,
    pub(super) graphs: Repeats<CommandGraph, Arc<PreparedGraph>>,
    /// CUDA's libraries; `None` if only our kernels are to serve.
    pub(super) libraries: Option<Libraries>,
    pub(super) programs: Programs,
    /// Which implementation serves.
    pub(super) choices: Choices,
    /// Launches that are measured.
    pub(super) measured: Vec<Measured>,
    /// The GPU on which host memory is, by CUDA's number, if it is on one.
    hosts_on: Option<usize>,
    /// By source and target.
    peers: HashMap<(DeviceId, DeviceId), PeerPath>,
}

/// What CUDA has of a queue.
pub(super) struct CudaQueue {
    pub stream: Stream,
    /// Memory of series of kernels and of launches by libraries.
    pub scratch: QueueMemory,
    /// Memory that libraries use for themselves.
    pub room: QueueMemory,
}

pub(super) type Here<'a> = driven::Here<'a, Cuda>;
type OpenQueue = driven::OpenQueue<Cuda>;
type Pending = driven::Pending<Cuda>;

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
    let cuda = Cuda {
        repeats: Repeats::default(),
        graphs: Repeats::default(),
        libraries,
        programs: Programs::default(),
        choices: Choices::default(),
        measured: Vec::new(),
        hosts_on: None,
        peers,
    };
    Ok(Box::new(Machine::new(cuda, devices, completions)))
}

impl Cuda {
    /// What a launch needs beside its queue, and the queue's memory for series of kernels.
    pub(super) fn launch_env<'a>(
        &'a mut self,
        here: &'a mut Here<'_>,
    ) -> (&'a mut QueueMemory, LaunchEnv<'a>) {
        let env = LaunchEnv {
            index: here.index,
            device: here.device,
            programs: &mut self.programs,
            libraries: self.libraries.as_mut(),
            memories: here.memories,
        };
        (&mut here.queue.own.scratch, env)
    }
}

impl Driver for Cuda {
    type Device = CudaDevice;
    type Queue = CudaQueue;
    type Event = Event;
    type Memory = Allocation;

    fn allocate(
        &mut self,
        device: &mut OpenDevice,
        bytes: u64,
    ) -> Result<Allocation, RuntimeError> {
        device.create(bytes)
    }

    fn pinned(&mut self, device: &OpenDevice, bytes: u64) -> Result<HostRegion, RuntimeError> {
        match self.hosts_on {
            Some(gpu) => memory_on(gpu, bytes),
            None => pinned(&device.context, bytes),
        }
    }

    fn host_on(&mut self, gpu: usize) {
        self.hosts_on = Some(gpu);
    }

    fn pin_in_place(&mut self, region: &mut HostRegion, devices: &[OpenDevice]) {
        if let Some(device) = devices.first() {
            // Where the driver refuses, copies are those of unpinned memory.
            let _ = pin_in_place(region, &device.context);
        }
    }

    fn forget<'q>(&mut self, memory: Memory, _queues: impl Iterator<Item = &'q mut OpenQueue>) {
        self.repeats.forget(memory);
        self.graphs.forget(memory);
    }

    fn open_queue(
        &mut self,
        device: &OpenDevice,
        _profiling: bool,
    ) -> Result<CudaQueue, RuntimeError> {
        let stream = Stream::new(&device.context);
        Ok(CudaQueue {
            stream: stream.map_err(|failure| device.failed(failure))?,
            scratch: None,
            room: None,
        })
    }

    fn load(&mut self, here: &mut Here<'_>, codelet: &Codelet) -> Result<(), RuntimeError> {
        let device = &mut *here.device;
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
            if libraries.ready(of.library, here.index, device).is_ok() {
                for source in &of.kernels {
                    self.programs.kernel(source, device)?;
                }
            }
        }
        Ok(())
    }

    fn arguments(
        &mut self,
        device: &OpenDevice,
        kernel: &OpenClKernel,
    ) -> Result<Vec<KernelArgument>, RuntimeError> {
        self.programs.arguments(&kernel.source, device)
    }

    fn wait_for(
        &mut self,
        here: &mut Here<'_>,
        others: &[&InFlight<Self>],
    ) -> Result<Vec<Arc<Event>>, NotAwaited> {
        let failed = |failure| NotAwaited::Here(here.device.failed(failure));
        here.device.context.make_current().map_err(failed)?;
        for other in others {
            match here.queue.own.stream.wait_for(&other.event) {
                Ok(()) => {}
                Err(failure) if other.device != here.index && other.event.has_ended().is_err() => {
                    let why = format!("{} answered {}", failure.call, failure.describe());
                    return Err(NotAwaited::There {
                        device: other.device,
                        loss: failure.is_loss().then_some(why),
                    });
                }
                Err(failure) => return Err(failed(failure)),
            }
        }
        Ok(Vec::new())
    }

    fn enqueue(
        &mut self,
        here: &mut Here<'_>,
        command: &Command,
        wanted: Wanted,
        _wait: &[Arc<Event>],
    ) -> Result<Enqueued<Event>, RuntimeError> {
        let begin = match wanted.begin {
            true => Some(here.record(true)?),
            false => None,
        };
        let keep_alive = match command {
            Command::Copy { from, to, rows } => copy(here, (*from, *to, *rows))?,
            Command::Launch(launch) => self.serve(here, launch, None)?,
            Command::Repeat(launch) => self.serve(here, launch, Some(launch))?,
            Command::Graph(graph) => self.launch_graph(here, graph)?,
            // Refused by the machine.
            Command::Series(_) => Vec::new(),
        };
        let mut enqueued = Enqueued::silently(keep_alive);
        if wanted.end {
            let profiling = here.queue.profiling;
            match here.record(profiling) {
                Ok(end) => (enqueued.end, enqueued.last) = (Some(Arc::clone(&end)), Some(end)),
                Err(error) => {
                    // The command runs.
                    here.queue.uncovered.keep(enqueued.keep_alive);
                    return Err(error);
                }
            }
        }
        enqueued.begin = begin;
        Ok(enqueued)
    }

    fn look(&mut self, devices: &mut [OpenDevice], _: &IdMap<EventId, InFlight<Self>>) {
        self.measure(devices);
    }

    /// A query of an event takes 0.1 us. A function that the driver calls when a command has
    /// ended (`cuLaunchHostFunc`) takes more, and what is behind it in its stream waits for it.
    fn ended(
        &mut self,
        device: &mut OpenDevice,
        pending: &Pending,
        _asks: bool,
    ) -> Option<(Status, Nanos)> {
        let status = match pending.last.has_ended() {
            Ok(true) => Status::Done,
            Ok(false) => return None,
            Err(failure) => {
                let error = device.failed(failure);
                match device.loss() {
                    Some(why) => Status::DeviceLost(why.to_owned()),
                    None => Status::Failed(error.to_string()),
                }
            }
        };
        Some((status, device.clock.now()))
    }

    fn is_polled(&self, _device: &OpenDevice) -> bool {
        true
    }

    fn stamps(
        &mut self,
        device: &mut OpenDevice,
        first: &Arc<Event>,
        last: &Arc<Event>,
    ) -> Option<Stamps> {
        let started = device.stamp(first).ok()?;
        Some(Stamps {
            submitted: started,
            started,
            ended: device.stamp(last).ok()?,
        })
    }

    fn retire(&mut self, device: &mut OpenDevice, pending: Pending) {
        let kernels = pending.kernels.into_iter().flatten();
        match pending.timed {
            // The last event is the second of these.
            Some(timed) => {
                drop(pending.last);
                (timed.into_iter().chain(kernels)).for_each(|event| device.reuse(event, true));
            }
            None => device.reuse(pending.last, false),
        }
    }

    fn rest(&mut self, devices: &[OpenDevice]) {
        devices.iter().for_each(OpenDevice::release_surplus);
    }

    fn synchronize(&mut self, queue: &OpenQueue) {
        // The next call detects a device that fails here.
        let _ = queue.own.stream.synchronize();
    }

    fn peer_path(&self, from: DeviceId, to: DeviceId) -> Option<PeerPath> {
        self.peers.get(&(from, to)).copied()
    }

    fn copies_directly(&self, from: DeviceId, to: DeviceId, _devices: &[OpenDevice]) -> bool {
        from == to || self.peers.contains_key(&(from, to))
    }

    fn runs_graphs(&self, device: &OpenDevice) -> bool {
        device.runs_graphs
    }

    fn know_implementations(&mut self, known: &[Comparison]) {
        self.choices.know(known);
    }

    fn implementations(&mut self, devices: &mut [OpenDevice]) -> Vec<Comparison> {
        self.measure(devices);
        let names = devices.iter().map(|device| device.info.name.as_str());
        self.choices.comparisons(&names.collect::<Vec<&str>>())
    }
}

impl Here<'_> {
    /// An event behind what the queue has.
    fn record(&mut self, is_timed: bool) -> Result<Arc<Event>, RuntimeError> {
        let event = self.device.record(&self.queue.own.stream, is_timed);
        event.map_err(|failure| self.device.failed(failure))
    }
}

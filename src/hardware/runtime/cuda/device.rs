//! An open device: its context, its limits, its memory and its events.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::sys::{self, CUdevice_attribute};

use super::discover::{attribute, capability, found, handle, start};
use super::error::{Failure, check};
use super::graph::FIRST_WITH_GRAPHS;
use super::handle::{Context, DeviceMemory, Event, Stream};
use super::memory::{Allocation, Unused};
use super::program::{LoadedKernel, LoadedProgram, ProgramKey};
use super::timeline::Timeline;
use crate::codelet::KernelSource;
use crate::machine::Device;
use crate::runtime::device_clock::{Clock, Stamps};
use crate::runtime::gpu_identity::GpuIdentity;
use crate::runtime::{Nanos, PeerPath, RuntimeError};

/// Events that calibrate a device's clock.
const CALIBRATION_SAMPLES: usize = 16;

/// Bytes of the copy that measures how fast a GPU copies to another one.
const PROBE: usize = 64 << 20;

/// The most work-groups of a launch and work-items of a group, along each dimension.
pub(super) struct Limits {
    pub groups: [usize; 3],
    pub items: [usize; 3],
}

/// An open device.
pub(super) struct OpenDevice {
    pub info: Device,
    pub identity: GpuIdentity,
    /// Ten times its compute capability.
    pub capability: u32,
    /// The driver's version, as CUDA counts.
    pub driver: i32,
    pub context: Arc<Context>,
    pub limits: Limits,
    /// Whether the driver has all calls that make graphs.
    pub runs_graphs: bool,
    pub clock: Clock,
    timeline: Timeline,
    /// Events that nothing waits for: without and with a time stamp.
    spare: [Vec<Arc<Event>>; 2],
    pub unused: Arc<Unused>,
    pub programs: HashMap<ProgramKey, Arc<LoadedProgram>>,
    pub kernels: HashMap<KernelSource, Arc<LoadedKernel>>,
    /// Bytes allocated here, and the most that were at once.
    allocated: u64,
    most_allocated: u64,
    /// Why it is lost.
    lost: Option<String>,
}

impl OpenDevice {
    /// Opens a device and calibrates its clock.
    pub(super) fn open(number: usize, epoch: Instant) -> Result<Self, RuntimeError> {
        let name = format!("cuda{number}");
        let version = start().map_err(RuntimeError::Selection)?;
        Self::try_open(number, version, epoch).map_err(|failure| failure.on(&name))
    }

    fn try_open(number: usize, version: i32, epoch: Instant) -> Result<Self, Failure> {
        use CUdevice_attribute::*;
        let raw = handle(number)?;
        let found = found(i32::try_from(number).unwrap_or(i32::MAX), version)?;
        let limit = |what| attribute(raw, what).map(|value| usize::try_from(value).unwrap_or(0));
        let limits = Limits {
            groups: [
                limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
            ],
            items: [
                limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
                limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
                limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
            ],
        };
        let context = Context::primary(raw)?;
        let stream = Stream::new(&context)?;
        let first = Arc::new(Event::new(&context, true)?);
        first.record(&stream)?;
        stream.synchronize()?;
        let mut device = Self {
            info: found.info,
            identity: found.identity,
            capability: capability(raw)?,
            driver: version,
            limits,
            runs_graphs: version >= FIRST_WITH_GRAPHS,
            clock: Clock::new(epoch),
            timeline: Timeline::new(first),
            spare: [Vec::new(), Vec::new()],
            unused: Arc::default(),
            programs: HashMap::new(),
            kernels: HashMap::new(),
            allocated: 0,
            most_allocated: 0,
            lost: None,
            context,
        };
        device.calibrate(&stream)?;
        Ok(device)
    }

    fn calibrate(&mut self, stream: &Stream) -> Result<(), Failure> {
        let event = Arc::new(Event::new(&self.context, true)?);
        let mut samples = Vec::with_capacity(CALIBRATION_SAMPLES);
        for _ in 0..CALIBRATION_SAMPLES {
            let before = self.clock.now();
            event.record(stream)?;
            stream.synchronize()?;
            let after = self.clock.now();
            let at = self.timeline.stamp(&event)?;
            let stamps = Stamps {
                submitted: at,
                started: at,
                ended: at,
            };
            samples.push((before, stamps, after));
        }
        self.clock.calibrate(&samples);
        Ok(())
    }

    /// Refuses a lost device.
    pub(super) fn check(&self) -> Result<(), RuntimeError> {
        match &self.lost {
            None => Ok(()),
            Some(why) => Err(RuntimeError::DeviceLost {
                device: self.info.name.clone(),
                why: why.clone(),
            }),
        }
    }

    /// The error of a failed call; records a loss.
    pub(super) fn failed(&mut self, failure: Failure) -> RuntimeError {
        let error = failure.on(&self.info.name);
        if let RuntimeError::DeviceLost { why, .. } = &error {
            self.lost.get_or_insert_with(|| why.clone());
        }
        error
    }

    /// Why it is lost; the first reason.
    pub(super) fn loss(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// Allocates memory, and charges it to what the device has.
    pub(super) fn alloc(&mut self, bytes: u64) -> Result<Allocation, RuntimeError> {
        let free = self.info.memory.saturating_sub(self.allocated);
        if bytes > free {
            return Err(self.out_of_memory(bytes, "more than the device has left"));
        }
        let memory = self.create(bytes)?;
        self.allocated += bytes;
        self.most_allocated = self.most_allocated.max(self.allocated);
        Ok(memory)
    }

    /// Allocates memory that is not counted.
    pub(super) fn create(&mut self, bytes: u64) -> Result<Allocation, RuntimeError> {
        self.check()?;
        let size = usize::try_from(bytes)
            .map_err(|_| self.out_of_memory(bytes, "more than can be addressed"))?;
        if let Some(memory) = self.unused.take(size) {
            return Ok(Allocation::new(memory, size, &self.unused));
        }
        let made = match DeviceMemory::new(&self.context, size) {
            Err(failure) if failure.is_out_of_memory() && self.unused.release() => {
                DeviceMemory::new(&self.context, size)
            }
            made => made,
        };
        match made {
            Ok(memory) => Ok(Allocation::new(memory, size, &self.unused)),
            Err(failure) if failure.is_out_of_memory() => {
                Err(self.out_of_memory(bytes, &failure.describe()))
            }
            Err(failure) => Err(self.failed(failure)),
        }
    }

    /// Records that so many bytes were freed.
    pub(super) fn freed(&mut self, bytes: u64) {
        self.allocated = self.allocated.saturating_sub(bytes);
    }

    /// Returns memory to the driver of which the device, which is idle, has more than it
    /// ever used.
    pub(super) fn release_surplus(&self) {
        let most = self.most_allocated.saturating_sub(self.allocated);
        self.unused.release_beyond(most);
    }

    fn out_of_memory(&self, requested: u64, why: &str) -> RuntimeError {
        RuntimeError::OutOfMemory {
            device: self.info.name.clone(),
            requested,
            why: format!(
                "{why}; of its {} bytes {} are allocated here; choose a smaller size or limit \
                 the memory that is used",
                self.info.memory, self.allocated
            ),
        }
    }

    /// An event that nothing waits for, recorded behind what a stream has.
    pub(super) fn record(
        &mut self,
        stream: &Stream,
        is_timed: bool,
    ) -> Result<Arc<Event>, Failure> {
        let event = match self.spare[usize::from(is_timed)].pop() {
            Some(event) => event,
            None => Arc::new(Event::new(&self.context, is_timed)?),
        };
        event.record(stream)?;
        Ok(event)
    }

    /// Takes back an event of [`Self::record`] that has ended. What waits for it was reported
    /// so before, and is not concerned when it is recorded again.
    pub(super) fn reuse(&mut self, event: Arc<Event>, is_timed: bool) {
        // The timeline may count from it.
        if Arc::strong_count(&event) == 1 {
            self.spare[usize::from(is_timed)].push(event);
        }
    }

    /// An ended event's time on the device's own clock, in nanoseconds.
    pub(super) fn stamp(&mut self, event: &Arc<Event>) -> Result<Nanos, Failure> {
        self.timeline.stamp(event)
    }
}

/// How a device copies to another one, measured; `None` where neither reaches the other's
/// memory.
pub(super) fn peer_path(from: &OpenDevice, to: &OpenDevice) -> Option<PeerPath> {
    let reaches = |one: &OpenDevice, other: &OpenDevice| {
        let mut can = 0;
        // SAFETY: the driver writes a number.
        let code = unsafe {
            sys::cuDeviceCanAccessPeer(&mut can, one.context.device(), other.context.device())
        };
        let can = check("cuDeviceCanAccessPeer", code).is_ok() && can != 0;
        can && one.context.reach(&other.context).is_ok()
    };
    if !reaches(from, to) || !reaches(to, from) {
        return None;
    }
    let bandwidth = probe(from, to).ok().filter(|bandwidth| *bandwidth > 0.0)?;
    Some(PeerPath {
        bandwidth,
        through_host: false,
    })
}

/// Bytes a second of a copy from one device to another one, the second of two.
fn probe(from: &OpenDevice, to: &OpenDevice) -> Result<f64, Failure> {
    let target = DeviceMemory::new(&to.context, PROBE)?;
    let source = DeviceMemory::new(&from.context, PROBE)?;
    let stream = Stream::new(&from.context)?;
    let [begun, ended] = [
        Event::new(&from.context, true)?,
        Event::new(&from.context, true)?,
    ];
    for _ in 0..2 {
        begun.record(&stream)?;
        // SAFETY: both have so many bytes, and live until the stream has ended.
        let code = unsafe {
            sys::cuMemcpyPeerAsync(
                target.raw(),
                to.context.raw(),
                source.raw(),
                from.context.raw(),
                PROBE,
                stream.raw(),
            )
        };
        check("cuMemcpyPeerAsync", code)?;
        ended.record(&stream)?;
        stream.synchronize()?;
    }
    Ok(PROBE as f64 * 1e9 / ended.since(&begun)?)
}

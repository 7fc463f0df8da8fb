//! An open device: its context, its limits, its memory and its events.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::sys::{self, CUdevice_attribute};

use super::discover::{attribute, capability, found, handle, start};
use super::error::{Failure, check};
use super::graph::FIRST_WITH_GRAPHS;
use super::handle::{Context, DeviceMemory, Event, Stream};
use super::memory::{Allocation, Unused, bytes};
use super::program::{LoadedKernel, LoadedProgram, ProgramKey};
use crate::codelet::KernelSource;
use crate::runtime::device_clock::{Clock, Stamps};
use crate::runtime::driven;
use crate::runtime::ids::GpuIdentity;
use crate::runtime::{Nanos, PeerPath, RuntimeError};

/// Events that calibrate a device's clock.
const CALIBRATION_SAMPLES: usize = 16;

/// Bytes of the copy that measures how fast a GPU copies to another one.
const PROBE: usize = 64 << 20;

/// After so many nanoseconds later times are counted from a later event.
const RENEWAL: f64 = 0.5e9;

/// The time of the first event, so that events shortly before it have times, too.
const BEGIN: f64 = 1e9;

/// The most work-groups of a launch and work-items of a group, along each dimension.
pub(super) struct Limits {
    pub groups: [usize; 3],
    pub items: [usize; 3],
}

/// An open device.
pub(super) type OpenDevice = driven::OpenDevice<CudaDevice>;

/// What CUDA has of a device.
pub(super) struct CudaDevice {
    pub identity: GpuIdentity,
    /// Ten times its compute capability.
    pub capability: u32,
    /// The driver's version, as CUDA counts.
    pub driver: i32,
    pub context: Arc<Context>,
    pub limits: Limits,
    /// Whether the driver has all calls that make graphs.
    pub runs_graphs: bool,
    timeline: Timeline,
    /// Events that nothing waits for: without and with a time stamp.
    spare: [Vec<Arc<Event>>; 2],
    pub unused: Arc<Unused>,
    pub programs: HashMap<ProgramKey, Arc<LoadedProgram>>,
    pub kernels: HashMap<KernelSource, Arc<LoadedKernel>>,
}

impl OpenDevice {
    /// Opens a device and calibrates its clock.
    pub(super) fn open(number: usize, epoch: Instant) -> Result<Self, RuntimeError> {
        let version = start().map_err(RuntimeError::Selection)?;
        let opened = Self::try_open(number, version, epoch);
        opened.map_err(|failure| failure.on(&format!("cuda{number}")))
    }

    fn try_open(number: usize, version: i32, epoch: Instant) -> Result<Self, Failure> {
        use CUdevice_attribute::*;
        let raw = handle(number)?;
        let found = found(number, version)?;
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
        let own = CudaDevice {
            identity: found.identity,
            capability: capability(raw)?,
            driver: version,
            limits,
            runs_graphs: version >= FIRST_WITH_GRAPHS,
            timeline: Timeline::new(first),
            spare: [Vec::new(), Vec::new()],
            unused: Arc::default(),
            programs: HashMap::new(),
            kernels: HashMap::new(),
            context,
        };
        let mut device = Self::new(found.info, Clock::new(epoch), own);
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
            Err(failure) => Err(self.no_memory(bytes, failure)),
        }
    }

    /// Returns memory to the driver of which the device, which is idle, has more than it
    /// ever used.
    pub(super) fn release_surplus(&self) {
        self.unused.release_beyond(self.below_most());
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
        unsafe { bytes(&stream, source.raw(), target.raw(), PROBE) }?;
        ended.record(&stream)?;
        stream.synchronize()?;
    }
    Ok(PROBE as f64 * 1e9 / ended.since(&begun)?)
}

/// Events' times on one clock of their device.
///
/// CUDA only tells the milliseconds between two events, as an `f32`. Over a second that is exact
/// to 60 ns, over an hour to 0.25 ms. So the event from which times are counted is renewed.
struct Timeline {
    /// An event that has ended, and its time.
    from: (Arc<Event>, f64),
}

impl Timeline {
    /// Counts from this event, which has ended.
    fn new(first: Arc<Event>) -> Self {
        Self {
            from: (first, BEGIN),
        }
    }

    /// An ended event's nanoseconds.
    fn stamp(&mut self, event: &Arc<Event>) -> Result<u64, Failure> {
        let (from, time) = &self.from;
        let since = event.since(from)?;
        let at = time + since;
        if since > RENEWAL {
            self.from = (Arc::clone(event), at);
        }
        Ok(at.max(0.0) as u64)
    }
}

//! An in-order queue, and the transfers on it. Kernels are in [`super::launch`].

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use cl3::command_queue::enqueue_marker_with_wait_list;
use cl3::error_codes::CL_INVALID_MEM_OBJECT;
use cl3::types::{CL_FALSE, cl_event};

use super::completion::KeepAlive;
use super::device::OpenDevice;
use super::handle::{Event, Mem, Queue};
use super::launch::Kernels;
use super::memory::View;
use super::without_event::{UncoveredCommands, enqueue};
use crate::codelet::{BufferId, HostMemoryId, KernelSource, Memory};
use crate::runtime::{HostRegion, IdMap, Location, Rows, RuntimeError};

/// A buffer on a device.
pub(super) struct Buffer {
    pub mem: Arc<Mem>,
    /// Indices of its device and that device's context.
    pub device: usize,
    pub context: usize,
    pub bytes: u64,
}

/// The memory that commands may name.
#[derive(Default)]
pub(super) struct Memories {
    pub buffers: IdMap<BufferId, Buffer>,
    pub hosts: IdMap<HostMemoryId, HostRegion>,
}

impl Memories {
    pub(super) fn buffer(&self, id: BufferId, device: usize) -> Result<&Buffer, RuntimeError> {
        self.buffers
            .get(&id)
            .filter(|buffer| buffer.device == device)
            .ok_or(RuntimeError::Unknown {
                what: "buffer of this device",
            })
    }

    pub(super) fn host(&self, id: HostMemoryId) -> Result<&HostRegion, RuntimeError> {
        self.hosts.get(&id).ok_or(RuntimeError::Unknown {
            what: "host memory",
        })
    }
}

/// An open queue.
pub(super) struct OpenQueue {
    /// Index of its device.
    pub device: usize,
    pub raw: Arc<Queue>,
    /// Whether its commands have time stamps.
    pub profiling: bool,
    /// Set once a command of this queue has failed: all later ones fail too.
    pub poisoned: Arc<AtomicBool>,
    /// When the host was notified of a command's end last.
    pub ended: Arc<AtomicU64>,
    /// The last command's event.
    pub last: Option<Arc<Event>>,
    /// The commands behind the last one with an event.
    pub uncovered: UncoveredCommands,
    pub kernels: Kernels,
    /// The kernels whose variants with smaller groups serve instead.
    pub unfit: HashSet<KernelSource>,
    /// The host regions that this queue's kernels work on.
    pub views: IdMap<HostMemoryId, View>,
    /// Memory of series of kernels, and its bytes.
    pub scratch: Option<(u64, Arc<Mem>)>,
}

/// A command that was enqueued.
pub(super) struct Enqueued {
    /// `None` for a command without an event.
    pub events: Option<Events>,
    /// The resources that must outlive it.
    pub keep_alive: Vec<KeepAlive>,
}

/// A command's events.
pub(super) struct Events {
    /// The last: the one to wait for.
    pub last: Arc<Event>,
    /// The command starts with the first of these, and ends with the second.
    pub timed: [Arc<Event>; 2],
    /// The events of the first and the last kernel of a mixed series.
    pub kernels: Option<[Arc<Event>; 2]>,
}

impl From<Event> for Events {
    fn from(event: Event) -> Self {
        let last = Arc::new(event);
        Self {
            timed: [Arc::clone(&last), Arc::clone(&last)],
            kernels: None,
            last,
        }
    }
}

/// One end of a copy, checked.
enum End<'a> {
    Host(&'a HostRegion),
    Buffer(&'a Buffer),
}

impl End<'_> {
    fn keeper(&self) -> KeepAlive {
        match self {
            Self::Host(region) => Arc::clone(&region.keeper) as KeepAlive,
            Self::Buffer(buffer) => Arc::clone(&buffer.mem) as KeepAlive,
        }
    }
}

/// A wait list as OpenCL takes it: no events, no list.
pub(super) fn list(wait: &[cl_event]) -> (u32, *const cl_event) {
    if wait.is_empty() {
        (0, std::ptr::null())
    } else {
        (wait.len() as u32, wait.as_ptr())
    }
}

/// The origin of a rectangle at the begin of its memory.
const ORIGIN: [usize; 3] = [0; 3];

/// The origin of rows that begin at this byte.
fn origin(offset: u64, pitch: u64) -> [usize; 3] {
    [(offset % pitch) as usize, (offset / pitch) as usize, 0]
}

/// The size of rows, in bytes and in rows.
fn region_of(rows: Rows) -> [usize; 3] {
    [rows.bytes as usize, rows.count as usize, 1]
}

impl OpenQueue {
    pub(super) fn new(device: usize, raw: Queue, profiling: bool) -> Self {
        Self {
            device,
            raw: Arc::new(raw),
            profiling,
            poisoned: Arc::default(),
            last: None,
            uncovered: UncoveredCommands::default(),
            kernels: Kernels::default(),
            unfit: HashSet::new(),
            ended: Arc::default(),
            views: IdMap::default(),
            scratch: None,
        }
    }

    /// Enqueues a copy between host memory and this device's, or between the memories
    /// of two devices of one context.
    pub(super) fn copy(
        &self,
        (device, memories): (&OpenDevice, &Memories),
        (from, to, rows): (Location, Location, Rows),
        with_event: bool,
        wait: &[cl_event],
    ) -> Result<Enqueued, RuntimeError> {
        let name = match (from.memory, to.memory, rows.count > 1) {
            (Memory::Host(_), _, false) => "clEnqueueWriteBuffer",
            (Memory::Host(_), _, true) => "clEnqueueWriteBufferRect",
            (_, Memory::Host(_), false) => "clEnqueueReadBuffer",
            (_, Memory::Host(_), true) => "clEnqueueReadBufferRect",
            (_, _, false) => "clEnqueueCopyBuffer",
            (_, _, true) => "clEnqueueCopyBufferRect",
        };
        let refuse = |why: String| RuntimeError::Call {
            device: device.info.name.clone(),
            call: name,
            why,
        };
        let end = |Location { memory, offset }: Location, bytes: u64| {
            let (what, end, length) = match memory {
                Memory::Host(id) => {
                    let region = memories.host(id)?;
                    ("host memory", End::Host(region), region.bytes)
                }
                Memory::Device(id) => {
                    let buffer = memories.buffers.get(&id);
                    let buffer = buffer.ok_or(RuntimeError::Unknown { what: "buffer" })?;
                    if buffer.context != device.context {
                        // A driver takes it for the loss of the device.
                        return Err(RuntimeError::Unsupported {
                            device: device.info.name.clone(),
                            what: "a copy between devices of two OpenCL contexts",
                        });
                    }
                    ("buffer", End::Buffer(buffer), buffer.bytes)
                }
            };
            match offset.checked_add(bytes).is_some_and(|end| end <= length) {
                true => Ok(end),
                false => Err(refuse(format!(
                    "{bytes} bytes at {offset} do not lie within a {what} of {length} bytes"
                ))),
            }
        };
        let [read, written] = rows.spans();
        let (source, target) = (end(from, read)?, end(to, written)?);
        let is_own = |end: &End| matches!(end, End::Buffer(buffer) if buffer.device == self.device);
        if !is_own(&source) && !is_own(&target) {
            let what = "buffer of this device";
            return Err(RuntimeError::Unknown { what });
        }
        if rows.total() == 0 {
            return self.marker(device, wait);
        }
        let (count, events) = list(wait);
        let queue = self.raw.raw();
        let (at, there, bytes) = (
            from.offset as usize,
            to.offset as usize,
            rows.bytes as usize,
        );
        // SAFETY: both ends were checked, the token of the command keeps their memory
        // alive until it has ended, and events order other accesses to these bytes.
        let event = enqueue(with_event, |library, event| unsafe {
            match (&source, &target) {
                (End::Host(region), End::Buffer(buffer)) if rows.count > 1 => library
                    .clEnqueueWriteBufferRect(
                        queue,
                        buffer.mem.raw(),
                        CL_FALSE,
                        origin(to.offset, rows.to_pitch).as_ptr(),
                        ORIGIN.as_ptr(),
                        region_of(rows).as_ptr(),
                        rows.to_pitch as usize,
                        0,
                        rows.from_pitch as usize,
                        0,
                        region.address.add(at).as_ptr().cast(),
                        count,
                        events,
                        event,
                    ),
                (End::Buffer(buffer), End::Host(region)) if rows.count > 1 => library
                    .clEnqueueReadBufferRect(
                        queue,
                        buffer.mem.raw(),
                        CL_FALSE,
                        origin(from.offset, rows.from_pitch).as_ptr(),
                        ORIGIN.as_ptr(),
                        region_of(rows).as_ptr(),
                        rows.from_pitch as usize,
                        0,
                        rows.to_pitch as usize,
                        0,
                        region.address.add(there).as_ptr().cast(),
                        count,
                        events,
                        event,
                    ),
                (End::Buffer(source), End::Buffer(target)) if rows.count > 1 => library
                    .clEnqueueCopyBufferRect(
                        queue,
                        source.mem.raw(),
                        target.mem.raw(),
                        origin(from.offset, rows.from_pitch).as_ptr(),
                        origin(to.offset, rows.to_pitch).as_ptr(),
                        region_of(rows).as_ptr(),
                        rows.from_pitch as usize,
                        0,
                        rows.to_pitch as usize,
                        0,
                        count,
                        events,
                        event,
                    ),
                (End::Host(region), End::Buffer(buffer)) => library.clEnqueueWriteBuffer(
                    queue,
                    buffer.mem.raw(),
                    CL_FALSE,
                    there,
                    bytes,
                    region.address.add(at).as_ptr().cast(),
                    count,
                    events,
                    event,
                ),
                (End::Buffer(buffer), End::Host(region)) => library.clEnqueueReadBuffer(
                    queue,
                    buffer.mem.raw(),
                    CL_FALSE,
                    at,
                    bytes,
                    region.address.add(there).as_ptr().cast(),
                    count,
                    events,
                    event,
                ),
                (End::Buffer(from), End::Buffer(to)) => library.clEnqueueCopyBuffer(
                    queue,
                    from.mem.raw(),
                    to.mem.raw(),
                    at,
                    there,
                    bytes,
                    count,
                    events,
                    event,
                ),
                // Refused above: neither is this device's.
                (End::Host(_), End::Host(_)) => Some(CL_INVALID_MEM_OBJECT),
            }
        });
        let event = event.map_err(|code| device.shared.failed(name, code))?;
        Ok(Enqueued {
            events: event.map(Events::from),
            keep_alive: vec![source.keeper(), target.keeper()],
        })
    }

    /// Enqueues a marker, in the place of an empty command.
    pub(super) fn marker(
        &self,
        device: &OpenDevice,
        wait: &[cl_event],
    ) -> Result<Enqueued, RuntimeError> {
        let (count, events) = list(wait);
        // SAFETY: the queue and the events are alive and of one context.
        let event = unsafe { enqueue_marker_with_wait_list(self.raw.raw(), count, events) };
        event
            .map(|event| Enqueued {
                events: Some(Event::new(event).into()),
                keep_alive: Vec::new(),
            })
            .map_err(|code| device.shared.failed("clEnqueueMarkerWithWaitList", code))
    }
}

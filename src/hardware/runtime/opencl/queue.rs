//! An in-order queue, and the transfers on it. Kernels are in [`super::launch`].

use std::collections::HashSet;
use std::sync::Arc;

use cl3::command_queue::enqueue_marker_with_wait_list;
use cl3::error_codes::CL_INVALID_MEM_OBJECT;
use cl3::types::{CL_FALSE, cl_event};

use super::device::OpenDevice;
use super::events::{enqueue, list};
use super::handle::{Event, Mem, Queue};
use super::launch::{Kernels, LaunchEnv};
use super::memory::View;
use crate::codelet::{HostMemoryId, KernelSource, Memory};
use crate::runtime::driven::{End, Enqueued, KeepAlive};
use crate::runtime::{IdMap, Location, Rows, RuntimeError};

/// What OpenCL has of a queue.
pub(super) struct ClQueue {
    pub raw: Arc<Queue>,
    /// The last command's event.
    pub last: Option<Arc<Event>>,
    pub kernels: Kernels,
    /// The kernels whose variants with smaller groups serve instead.
    pub unfit: HashSet<KernelSource>,
    /// The host regions that this queue's kernels work on.
    pub views: IdMap<HostMemoryId, View>,
    /// Memory of series of kernels, and its bytes.
    pub scratch: Option<(u64, Arc<Mem>)>,
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

impl ClQueue {
    pub(super) fn new(raw: Queue) -> Self {
        Self {
            raw: Arc::new(raw),
            last: None,
            kernels: Kernels::default(),
            unfit: HashSet::new(),
            views: IdMap::default(),
            scratch: None,
        }
    }

    /// Enqueues a copy between host memory and this device's, or between the memories
    /// of two devices of one context.
    pub(super) fn copy(
        &self,
        env: &LaunchEnv<'_>,
        (from, to, rows): (Location, Location, Rows),
        has_event: bool,
        wait: &[cl_event],
    ) -> Result<Enqueued<Event>, RuntimeError> {
        let device = env.device;
        let name = match (from.memory, to.memory, rows.count > 1) {
            (Memory::Host(_), _, false) => "clEnqueueWriteBuffer",
            (Memory::Host(_), _, true) => "clEnqueueWriteBufferRect",
            (_, Memory::Host(_), false) => "clEnqueueReadBuffer",
            (_, Memory::Host(_), true) => "clEnqueueReadBufferRect",
            (_, _, false) => "clEnqueueCopyBuffer",
            (_, _, true) => "clEnqueueCopyBufferRect",
        };
        let ends = env.memories.ends((env.index, device), (from, to, rows))?;
        for end in &ends {
            if let End::Buffer(buffer) = end
                && buffer.memory.context != device.context
            {
                // A driver takes it for the loss of the device.
                return Err(RuntimeError::Unsupported {
                    device: device.info.name.clone(),
                    what: "a copy between devices of two OpenCL contexts",
                });
            }
        }
        let [source, target] = &ends;
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
        let event = enqueue(has_event, |library, event| unsafe {
            match (source, target) {
                (End::Host(region), End::Buffer(buffer)) if rows.count > 1 => library
                    .clEnqueueWriteBufferRect(
                        queue,
                        buffer.memory.mem.raw(),
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
                        buffer.memory.mem.raw(),
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
                        source.memory.mem.raw(),
                        target.memory.mem.raw(),
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
                    buffer.memory.mem.raw(),
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
                    buffer.memory.mem.raw(),
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
                    from.memory.mem.raw(),
                    to.memory.mem.raw(),
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
        let event = event.map_err(|code| device.failed_at(name, code))?;
        Ok(with_event(event, vec![source.keeper(), target.keeper()]))
    }

    /// Enqueues a marker, in the place of an empty command.
    pub(super) fn marker(
        &self,
        device: &OpenDevice,
        wait: &[cl_event],
    ) -> Result<Enqueued<Event>, RuntimeError> {
        let (count, events) = list(wait);
        // SAFETY: the queue and the events are alive and of one context.
        let event = unsafe { enqueue_marker_with_wait_list(self.raw.raw(), count, events) };
        let event = event.map_err(|code| device.failed_at("clEnqueueMarkerWithWaitList", code))?;
        Ok(with_event(Some(Arc::new(Event::new(event))), Vec::new()))
    }
}

/// A command that begins and ends with one event, or has none.
fn with_event(event: Option<Arc<Event>>, keep_alive: Vec<KeepAlive>) -> Enqueued<Event> {
    Enqueued {
        begin: event.clone(),
        end: event.clone(),
        last: event,
        keep_alive,
    }
}

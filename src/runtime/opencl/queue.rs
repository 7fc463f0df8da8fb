//! An in-order queue: transfers.
//!
//! Kernels are in [`super::launch`].

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cl3::command_queue::enqueue_marker_with_wait_list;
use cl3::types::{CL_FALSE, cl_event};

use super::completion::Keep;
use super::device::OpenDevice;
use super::handle::{Event, Mem, Queue};
use super::launch::Kernels;
use super::memory::View;
use super::quiet::{Owed, call};
use crate::codelet::{BufferId, HostMemoryId};
use crate::runtime::{DeviceSpan, HostRegion, HostSpan, IdMap, RuntimeError};

/// A buffer on a device.
pub(super) struct Buffer {
    pub mem: Arc<Mem>,
    /// Index of its device.
    pub device: usize,
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
    /// Whether it stamps its commands.
    pub stamps: bool,
    /// Set once a command of this queue has failed: all later ones fail too.
    pub poisoned: Arc<AtomicBool>,
    /// The last command's event.
    pub last: Option<Arc<Event>>,
    /// Of the commands behind the last one that has an event.
    pub owed: Owed,
    pub kernels: Kernels,
    /// The host regions that this queue's kernels work on.
    pub views: IdMap<HostMemoryId, View>,
}

/// A command that is on its way.
pub(super) struct Enqueued {
    /// Of one whose end can be heard of.
    pub events: Option<Events>,
    /// What must outlive it.
    pub keeps: Vec<Keep>,
}

/// A command's events.
pub(super) struct Events {
    /// The last: the one to wait for.
    pub last: Arc<Event>,
    /// Those whose times are the command's: it starts with the first, and ends
    /// with the second.
    pub timed: [Arc<Event>; 2],
    /// Of a series of transfers and launches: its first kernel's and its last's.
    pub kernels: Option<[Arc<Event>; 2]>,
}

impl Events {
    pub(super) fn single(event: cl_event) -> Self {
        let last = Arc::new(Event::new(event));
        Self {
            timed: [Arc::clone(&last), Arc::clone(&last)],
            kernels: None,
            last,
        }
    }
}

/// Which way a transfer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    ToDevice,
    ToHost,
}

/// A wait list as OpenCL takes it: no events, no list.
pub(super) fn list(wait: &[cl_event]) -> (u32, *const cl_event) {
    if wait.is_empty() {
        (0, std::ptr::null())
    } else {
        (wait.len() as u32, wait.as_ptr())
    }
}

impl OpenQueue {
    pub(super) fn new(device: usize, raw: Queue, stamps: bool) -> Self {
        Self {
            device,
            raw: Arc::new(raw),
            stamps,
            poisoned: Arc::default(),
            last: None,
            owed: Owed::default(),
            kernels: Kernels::default(),
            views: IdMap::default(),
        }
    }

    /// Enqueues a write or a read, with an event if its end is `heard` of.
    pub(super) fn transfer(
        &self,
        (device, memories): (&OpenDevice, &Memories),
        direction: Direction,
        host: HostSpan,
        there: DeviceSpan,
        heard: bool,
        wait: &[cl_event],
    ) -> Result<Enqueued, RuntimeError> {
        let name = match direction {
            Direction::ToDevice => "clEnqueueWriteBuffer",
            Direction::ToHost => "clEnqueueReadBuffer",
        };
        let region = memories.host(host.memory)?;
        let buffer = memories.buffer(there.buffer, self.device)?;
        for (what, offset, bytes) in [
            ("host memory", host.offset, region.bytes),
            ("buffer", there.offset, buffer.bytes),
        ] {
            if offset.checked_add(host.bytes).is_none_or(|end| end > bytes) {
                return Err(RuntimeError::Call {
                    device: device.info.name.clone(),
                    call: name,
                    why: format!(
                        "{} bytes at {offset} do not lie within a {what} of {bytes} bytes",
                        host.bytes
                    ),
                });
            }
        }
        if host.bytes == 0 {
            return self.marker(device, wait);
        }
        let (count, events) = list(wait);
        let (offset, bytes) = (there.offset as usize, host.bytes as usize);
        let mut event: cl_event = std::ptr::null_mut();
        let told = match heard {
            true => &raw mut event,
            false => std::ptr::null_mut(),
        };
        let (queue, mem) = (self.raw.raw(), buffer.mem.raw());
        // What the crate offers makes an event always.
        let enqueued = call(|library| {
            // SAFETY: both spans were checked, the token of the command keeps the
            // region and the buffer alive until it has ended, and the engine
            // orders by events whoever else touches these bytes.
            let address = unsafe { region.address.add(host.offset as usize) };
            let address: *mut c_void = address.as_ptr().cast();
            match direction {
                Direction::ToDevice => library.clEnqueueWriteBuffer(
                    queue, mem, CL_FALSE, offset, bytes, address, count, events, told,
                ),
                Direction::ToHost => library.clEnqueueReadBuffer(
                    queue, mem, CL_FALSE, offset, bytes, address, count, events, told,
                ),
            }
        });
        enqueued.map_err(|code| device.shared.failed(name, code))?;
        Ok(Enqueued {
            events: heard.then(|| Events::single(event)),
            keeps: vec![
                Arc::clone(&buffer.mem) as Keep,
                Arc::clone(&region.keeper) as Keep,
            ],
        })
    }

    /// Enqueues a command that does nothing, in the place of an empty one.
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
                events: Some(Events::single(event)),
                keeps: Vec::new(),
            })
            .map_err(|code| device.shared.failed("clEnqueueMarkerWithWaitList", code))
    }
}

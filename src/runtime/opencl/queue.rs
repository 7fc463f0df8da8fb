//! An in-order queue, and the transfers on it. Kernels are in [`super::launch`].

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cl3::command_queue::enqueue_marker_with_wait_list;
use cl3::types::{CL_FALSE, cl_event};

use super::completion::KeepAlive;
use super::device::OpenDevice;
use super::handle::{Event, Mem, Queue};
use super::launch::Kernels;
use super::memory::View;
use super::without_event::{UncoveredCommands, enqueue};
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
    /// Whether its commands have time stamps.
    pub profiling: bool,
    /// Set once a command of this queue has failed: all later ones fail too.
    pub poisoned: Arc<AtomicBool>,
    /// The last command's event.
    pub last: Option<Arc<Event>>,
    /// The commands behind the last one with an event.
    pub uncovered: UncoveredCommands,
    pub kernels: Kernels,
    /// The host regions that this queue's kernels work on.
    pub views: IdMap<HostMemoryId, View>,
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
    pub(super) fn new(device: usize, raw: Queue, profiling: bool) -> Self {
        Self {
            device,
            raw: Arc::new(raw),
            profiling,
            poisoned: Arc::default(),
            last: None,
            uncovered: UncoveredCommands::default(),
            kernels: Kernels::default(),
            views: IdMap::default(),
        }
    }

    /// Enqueues a write or a read.
    pub(super) fn transfer(
        &self,
        (device, memories): (&OpenDevice, &Memories),
        direction: Direction,
        host: HostSpan,
        there: DeviceSpan,
        with_event: bool,
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
        let (queue, mem) = (self.raw.raw(), buffer.mem.raw());
        let event = enqueue(with_event, |library, event| {
            // SAFETY: both spans were checked, the token of the command keeps the
            // region and the buffer alive until it has ended, and events order
            // other accesses to these bytes.
            let address = unsafe { region.address.add(host.offset as usize) };
            let address: *mut c_void = address.as_ptr().cast();
            match direction {
                Direction::ToDevice => library.clEnqueueWriteBuffer(
                    queue, mem, CL_FALSE, offset, bytes, address, count, events, event,
                ),
                Direction::ToHost => library.clEnqueueReadBuffer(
                    queue, mem, CL_FALSE, offset, bytes, address, count, events, event,
                ),
            }
        });
        let event = event.map_err(|code| device.shared.failed(name, code))?;
        Ok(Enqueued {
            events: event.map(Events::from),
            keep_alive: vec![
                Arc::clone(&buffer.mem) as KeepAlive,
                Arc::clone(&region.keeper) as KeepAlive,
            ],
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

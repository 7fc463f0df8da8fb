//! Memory of devices; host memory, pinned for transfers, or mapped for kernels that compute in it.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use cl3::command_queue::{enqueue_map_buffer, enqueue_unmap_mem_object};
use cl3::event::wait_for_events;
use cl3::memory::{
    CL_MAP_READ, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_WRITE, CL_MEM_USE_HOST_PTR,
    create_buffer,
};
use cl3::types::{CL_FALSE, CL_TRUE};

use super::device::OpenDevice;
use super::handle::{Context, Event, Mem, Queue, wait_for_release};
use crate::codelet::HostMemoryId;
use crate::runtime::driven::{Code, KeepAlive};
use crate::runtime::{HostRegion, RuntimeError};

/// Alignment of host memory in bytes.
const PAGE: usize = 4096;

/// Memory of a device.
pub(super) struct ClMemory {
    pub mem: Mem,
    /// Index of its context.
    pub context: usize,
}

/// A buffer of host memory that the driver pinned, mapped for its whole life.
struct Pinned {
    /// `Some` until it is dropped.
    mem: Option<Mem>,
    queue: Arc<Queue>,
    mapped: NonNull<c_void>,
}

// SAFETY: the address is only passed back to OpenCL, from any thread.
unsafe impl Send for Pinned {}
// SAFETY: as above; nothing is done through a shared reference.
unsafe impl Sync for Pinned {}

impl Drop for Pinned {
    fn drop(&mut self) {
        let Some(mem) = self.mem.take() else {
            return;
        };
        // SAFETY: the buffer is alive and mapped at this address. An error
        // leaves the memory to the driver.
        let unmapped = unsafe {
            enqueue_unmap_mem_object(
                self.queue.raw(),
                mem.raw(),
                self.mapped.as_ptr(),
                0,
                std::ptr::null(),
            )
        };
        if let Ok(event) = unmapped {
            let event = Event::new(event);
            // The queue may be released next.
            if wait_for_events(&[event.raw()]).is_ok() {
                // A buffer may keep its last event.
                drop(mem);
                wait_for_release([&event]);
            }
        }
    }
}

/// Host memory that the device transfers from and to at full speed.
pub(super) fn pinned(
    device: &OpenDevice,
    context: &Context,
    bytes: u64,
) -> Result<HostRegion, RuntimeError> {
    let refuse = |why: String| RuntimeError::OutOfMemory {
        device: format!("pinned host memory for {}", device.info.name),
        requested: bytes,
        why: format!("{why}; lower the size, or raise the limit on locked memory (ulimit -l)"),
    };
    let size = usize::try_from(bytes)
        .ok()
        .and_then(|size| size.max(1).checked_add(PAGE))
        .ok_or_else(|| refuse("more than can be addressed".to_owned()))?;
    // SAFETY: the driver allocates; no host pointer is given.
    let mem = unsafe {
        create_buffer(
            context.raw(),
            CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
            size,
            std::ptr::null_mut(),
        )
    }
    .map(Mem::new)
    .map_err(|code| {
        let most = device.info.max_allocation;
        refuse(if bytes > most {
            format!(
                "{}, and one allocation may have {most} bytes",
                code.describe()
            )
        } else {
            code.describe()
        })
    })?;
    let (mapped, event) =
        map(&device.service, &mem, size, true).map_err(|code| refuse(code.describe()))?;
    drop(event);
    let mapped = NonNull::new(mapped).ok_or_else(|| refuse("it maps to nothing".to_owned()))?;
    let keeper = Pinned {
        mem: Some(mem),
        queue: Arc::clone(&device.service),
        mapped,
    };
    // SAFETY: the mapping has a page more than was asked for, so the next
    // page boundary and `bytes` bytes behind it lie inside.
    let address = unsafe {
        let first = mapped.cast::<u8>();
        first.add(first.align_offset(PAGE))
    };
    Ok(HostRegion {
        id: HostMemoryId::fresh(),
        address,
        bytes,
        keeper: Arc::new(keeper),
    })
}

/// Memory of somebody else, over which drivers were given buffers.
struct PinnedInPlace {
    /// Released before the memory that they cover.
    _buffers: Vec<Mem>,
    _keeper: KeepAlive,
}

/// Creates a buffer over a region in each context, so that its driver pins the region
/// for as long as commands use it. Nothing is done with the buffers. Where a driver
/// refuses, transfers are those of unpinned memory.
pub(super) fn pin_in_place<'c>(
    region: &mut HostRegion,
    contexts: impl Iterator<Item = &'c Context>,
) {
    let buffers: Vec<Mem> = contexts
        .filter_map(|context| over(context, region).ok())
        .collect();
    if !buffers.is_empty() {
        region.keeper = Arc::new(PinnedInPlace {
            _buffers: buffers,
            _keeper: Arc::clone(&region.keeper),
        });
    }
}

/// A buffer of `context` over a region, which must outlive it.
fn over(context: &Context, region: &HostRegion) -> Result<Mem, i32> {
    let size = region.bytes.max(1) as usize;
    // SAFETY: the region is that long; the callers keep it mapped until the buffer is
    // released.
    let mem = unsafe {
        create_buffer(
            context.raw(),
            CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
            size,
            region.address.as_ptr().cast(),
        )
    };
    mem.map(Mem::new)
}

/// Maps all of a buffer for reading and writing.
pub(super) fn map(
    queue: &Queue,
    mem: &Mem,
    size: usize,
    blocking: bool,
) -> Result<(*mut c_void, Event), i32> {
    let mut address = std::ptr::null_mut();
    // SAFETY: queue and buffer are alive and of one context.
    let event = unsafe {
        enqueue_map_buffer(
            queue.raw(),
            mem.raw(),
            if blocking { CL_TRUE } else { CL_FALSE },
            CL_MAP_READ | CL_MAP_WRITE,
            0,
            size,
            &mut address,
            0,
            std::ptr::null(),
        )
    }?;
    Ok((address, Event::new(event)))
}

/// A buffer over a host region, for the kernels of one queue.
///
/// Each queue has its own, so that the driver finds no dependency between
/// commands of different queues that work on different parts of a region.
pub(super) struct View {
    /// The buffer, dropped before the memory that it covers.
    pub mem: Arc<Mem>,
    pub size: usize,
    /// Where it is mapped. A device that is no CPU may cache, so its views
    /// are unmapped only while a kernel works on them.
    pub mapped: Option<NonNull<c_void>>,
    pub keeper: KeepAlive,
}

// SAFETY: the address is only passed back to OpenCL.
unsafe impl Send for View {}

impl View {
    /// A buffer of `context` over a region.
    pub(super) fn over(context: &Context, region: &HostRegion) -> Result<Self, i32> {
        Ok(Self {
            mem: Arc::new(over(context, region)?),
            size: region.bytes.max(1) as usize,
            mapped: None,
            keeper: Arc::clone(&region.keeper) as KeepAlive,
        })
    }
}

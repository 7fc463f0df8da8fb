//! Host memory that a driver has pinned.
//!
//! A driver waits for a write's wait list before it reads such memory, and copies it without
//! a processor. The driver may keep as much of a device's memory for it (NVIDIA's does).

use std::ptr;

use opencl_sys::{CL_MAP_READ, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_TRUE};

use crate::call::enqueue;
use crate::domain::Own;
use crate::own_queue::{OwnQueue, Site};
use crate::status::{Fallible, driver_object};

/// Pinned memory, which is mapped as long as it lives.
pub struct Pinned {
    address: *mut u8,
    queue: OwnQueue,
    mem: Own,
}

// SAFETY: drivers' handles may be used by every thread, and events order the uses of the
// bytes.
unsafe impl Send for Pinned {}

impl Pinned {
    /// So many bytes, pinned for all devices of a driver's context.
    pub fn new(site: Site, size: usize) -> Fallible<Self> {
        let mem = site
            .domain
            .buffer(CL_MEM_ALLOC_HOST_PTR, size, ptr::null_mut())?;
        let (table, queue) = (site.domain.table, OwnQueue::new(site)?);
        let (access, none, event) = (CL_MAP_READ | CL_MAP_WRITE, ptr::null(), ptr::null_mut());
        let (at, of) = (queue.handle(), mem.handle());
        let address = driver_object!(
            table,
            clEnqueueMapBuffer(at, of, CL_TRUE, access, 0, size, 0, none, event)
        )?;
        let address = address.cast();
        Ok(Self {
            address,
            queue,
            mem,
        })
    }

    pub fn address(&self) -> *mut u8 {
        self.address
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let (mem, address) = (self.mem.handle(), self.address.cast());
        let _ = enqueue!(&self.queue.now(), clEnqueueUnmapMemObject(mem, address));
        let _ = self.queue.finish();
    }
}

//! Host memory that a driver has pinned.
//!
//! A driver waits for a write's wait list before it reads such memory, and copies it without
//! a processor. The driver may keep as much of a device's memory for it (NVIDIA's does).

use std::ptr;

use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::{
    CL_MAP_READ, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_TRUE, cl_command_queue, cl_device_id,
    cl_mem,
};

use crate::domain::Domain;
use crate::status::{Fallible, driver, driver_object};

/// Pinned memory, which is mapped as long as it lives.
pub struct Pinned {
    table: &'static cl_icd_dispatch,
    mem: cl_mem,
    queue: cl_command_queue,
    address: *mut u8,
}

// SAFETY: drivers' handles may be used by every thread, and events order the uses of the
// bytes.
unsafe impl Send for Pinned {}

impl Pinned {
    /// So many bytes, pinned for all devices of a driver's context.
    pub fn new(domain: &Domain, device: cl_device_id, size: usize) -> Fallible<Self> {
        let (table, context) = (domain.table, domain.context);
        let mem = driver_object!(
            table,
            clCreateBuffer(context, CL_MEM_ALLOC_HOST_PTR, size, ptr::null_mut())
        )?;
        let mut pinned = Self {
            table,
            mem,
            queue: ptr::null_mut(),
            address: ptr::null_mut(),
        };
        pinned.queue = driver_object!(table, clCreateCommandQueue(context, device, 0))?;
        let (access, none, event) = (CL_MAP_READ | CL_MAP_WRITE, ptr::null(), ptr::null_mut());
        let address = driver_object!(
            table,
            clEnqueueMapBuffer(pinned.queue, mem, CL_TRUE, access, 0, size, 0, none, event)
        )?;
        pinned.address = address.cast();
        Ok(pinned)
    }

    pub fn address(&self) -> *mut u8 {
        self.address
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if !self.address.is_null() {
            let (address, none, event) = (self.address.cast(), ptr::null(), ptr::null_mut());
            let _ = driver!(
                self.table,
                clEnqueueUnmapMemObject(self.queue, self.mem, address, 0, none, event)
            );
        }
        if !self.queue.is_null() {
            let _ = driver!(self.table, clFinish(self.queue));
            let _ = driver!(self.table, clReleaseCommandQueue(self.queue));
        }
        let _ = driver!(self.table, clReleaseMemObject(self.mem));
    }
}

//! Contexts of drivers, and what this library has drivers make in them.

use std::ffi::CStr;
use std::ptr;
use std::sync::Arc;

use libc::{c_char, c_void};
use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::*;

use crate::drivers::Driver;
use crate::status::{Fallible, check, driver, driver_object};

/// A driver's object that is given back when this goes.
pub struct Own {
    handle: *mut c_void,
    release: Release,
}

type Release = Option<unsafe extern "C" fn(*mut c_void) -> cl_int>;

// SAFETY: drivers' handles may be used by every thread.
unsafe impl Send for Own {}
// SAFETY: as above.
unsafe impl Sync for Own {}

impl Own {
    /// Owns an object, which the function of its driver gives back.
    pub fn new(handle: *mut c_void, release: Release) -> Self {
        Self { handle, release }
    }

    pub fn handle(&self) -> *mut c_void {
        self.handle
    }

    /// Gives the object to somebody else to own.
    pub fn into_handle(mut self) -> *mut c_void {
        self.release = None;
        self.handle
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the object is alive and of the function's driver.
            let _ = unsafe { release(self.handle) };
        }
    }
}

/// What a driver calls when something goes wrong in a context.
pub type Notify = unsafe extern "C" fn(*const c_char, *const c_void, usize, *mut c_void);

/// A context of one driver. Its events can be waited for by its own queues only.
#[derive(Clone)]
pub struct Domain {
    pub table: &'static cl_icd_dispatch,
    pub context: cl_context,
    /// Whether queues with samples and parts of launches need programs of their own: PoCL
    /// confuses overlapping launches of one program.
    pub program_per_queue: bool,
    _own: Arc<Own>,
}

// SAFETY: drivers' handles may be used by every thread.
unsafe impl Send for Domain {}
// SAFETY: as above.
unsafe impl Sync for Domain {}

impl Domain {
    /// A context of some devices of a driver.
    pub fn open(
        driver: &Driver,
        ids: &[cl_device_id],
        notify: Option<Notify>,
        data: *mut c_void,
    ) -> Fallible<Self> {
        let (table, platform) = (driver.table, driver.platform as cl_context_properties);
        let properties = [CL_CONTEXT_PLATFORM as cl_context_properties, platform, 0];
        let (list, count, ids) = (properties.as_ptr(), ids.len() as cl_uint, ids.as_ptr());
        let context = driver_object!(table, clCreateContext(list, count, ids, notify, data))?;
        Ok(Self {
            table,
            context,
            program_per_queue: driver.name.starts_with("Portable Computing Language"),
            _own: Arc::new(Own::new(context, table.clReleaseContext)),
        })
    }

    /// A queue at a device of the context.
    pub fn queue(
        &self,
        device: cl_device_id,
        properties: cl_command_queue_properties,
    ) -> Fallible<Own> {
        let (table, context) = (self.table, self.context);
        let queue = driver_object!(table, clCreateCommandQueue(context, device, properties))?;
        Ok(Own::new(queue, table.clReleaseCommandQueue))
    }

    /// A buffer, with the memory of a program if the flags say so.
    pub fn buffer(&self, flags: cl_mem_flags, bytes: usize, host: *mut c_void) -> Fallible<Own> {
        let (table, context) = (self.table, self.context);
        let mem = driver_object!(table, clCreateBuffer(context, flags, bytes, host))?;
        Ok(Own::new(mem, table.clReleaseMemObject))
    }

    /// A program of a text.
    pub fn program(&self, text: &[u8]) -> Fallible<Own> {
        let (table, context) = (self.table, self.context);
        let (mut text, length) = (text.as_ptr().cast(), text.len());
        let program = driver_object!(
            table,
            clCreateProgramWithSource(context, 1, &raw mut text, &raw const length)
        )?;
        Ok(Own::new(program, table.clReleaseProgram))
    }

    /// Builds a program for some devices.
    pub fn build(&self, program: cl_program, ids: &[cl_device_id], options: &CStr) -> Fallible<()> {
        let (count, none) = (ids.len() as cl_uint, ptr::null_mut());
        check(driver!(
            self.table,
            clBuildProgram(program, count, ids.as_ptr(), options.as_ptr(), None, none)
        ))
    }

    /// A kernel of a program that is built.
    pub fn kernel(&self, program: cl_program, name: &CStr) -> Fallible<Own> {
        let kernel = driver_object!(self.table, clCreateKernel(program, name.as_ptr()))?;
        Ok(Own::new(kernel, self.table.clReleaseKernel))
    }
}

/// Sets an argument of a driver's kernel. `value` is null or has `size` bytes.
pub fn set_argument(
    table: &cl_icd_dispatch,
    kernel: cl_kernel,
    index: usize,
    (size, value): (usize, *const c_void),
) -> Fallible<()> {
    check(driver!(
        table,
        clSetKernelArg(kernel, index as cl_uint, size, value)
    ))
}

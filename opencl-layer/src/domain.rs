//! Contexts of drivers, and what this library has drivers make in them.

use std::ffi::CStr;
use std::ptr;
use std::sync::Arc;

use libc::{c_char, c_void};
use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::*;

use crate::drivers::Driver;
use crate::lock::{Mutex, VARIANTS};
use crate::native::Native;
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

// Numbers of programs' variants.
//
// PoCL confuses overlapping launches of one program if one of them has an offset or a
// smaller range, and identifies a program by its text and options. Samples and parts of
// launches are such launches, which the program knows nothing of. Every queue that may
// have them therefore has a number that no other living queue of its context has, and runs
// programs that were built with it. The lowest free number is taken, so that the driver's
// cache knows its programs. All queues that only have the program's own launches run the
// program as it was first built: each build takes as long as the program's.

/// The numbers of one context: whether a queue has each, and what must end before another
/// may.
#[derive(Default)]
pub struct Variants(Mutex<Vec<Owner>, VARIANTS>);

enum Owner {
    Queue,
    /// All queues that launch nothing but what the program does.
    Whole,
    /// A queue that is gone, whose last commands end with this event.
    Ends(Arc<Native>),
    Nobody,
}

impl Variants {
    /// Takes the lowest free number.
    pub fn take(&self) -> u32 {
        take(&mut self.0.lock())
    }

    /// Takes the number of all queues that launch nothing but what the program does: that of
    /// the program as it was first built, unless another queue has it.
    pub fn take_whole(&self) -> u32 {
        let mut numbers = self.0.lock();
        if let Some(Owner::Whole) = numbers.first() {
            return 0;
        }
        let number = take(&mut numbers);
        if number == 0 {
            numbers[0] = Owner::Whole;
        }
        number
    }

    /// Gives a number back, for use after `last` has ended.
    pub fn give_back(&self, number: u32, last: Option<Arc<Native>>) {
        match self.0.lock().get_mut(number as usize) {
            None | Some(Owner::Whole) => {}
            Some(owner) => *owner = last.map_or(Owner::Nobody, Owner::Ends),
        }
    }
}

fn take(numbers: &mut Vec<Owner>) -> u32 {
    let is_free = |owner: &Owner| match owner {
        Owner::Queue | Owner::Whole => false,
        Owner::Ends(native) => native.execution_status().is_ok_and(|status| status <= 0),
        Owner::Nobody => true,
    };
    let number = numbers.iter().position(is_free).unwrap_or(numbers.len());
    match numbers.get_mut(number) {
        Some(owner) => *owner = Owner::Queue,
        None => numbers.push(Owner::Queue),
    }
    number as u32
}

//! The functions that launch kernels, and functions of the program that run as commands.

use std::ptr;
use std::sync::OnceLock;

use libc::c_void;
use opencl_sys::*;

use super::Launch;
use crate::call::enqueue as give;
use crate::command::{Use, Work};
use crate::handle::{self, Ref};
use crate::kernel::Kernel;
use crate::lock::{Mutex, NATIVE_KERNEL};
use crate::mem::Mem;
use crate::queue::Queue;
use crate::shape::Shape;
use crate::status::Fallible;
use crate::submit::{Asked, enqueue};

/// `clEnqueueNDRangeKernel`.
pub unsafe extern "C" fn enqueue_nd_range_kernel(
    queue: cl_command_queue,
    kernel: cl_kernel,
    dimensions: cl_uint,
    offset: *const usize,
    global: *const usize,
    local: *const usize,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let asked = Asked::new(CL_COMMAND_NDRANGE_KERNEL, count, events, event);
    let work = |queue: &Ref<Queue>| {
        let kernel = Ref::<Kernel>::of(kernel)?;
        if kernel.program.context != queue.context {
            return Err(CL_INVALID_CONTEXT);
        }
        // SAFETY: OpenCL's promises about the lists.
        let shape = unsafe { Shape::new(dimensions, offset, global, local)? };
        let arguments = kernel.arguments()?;
        let launch = Launch {
            shapes: kernel.shapes(),
            kernel,
            arguments,
            shape,
            record: OnceLock::new(),
            division: OnceLock::new(),
            refusal: OnceLock::new(),
        };
        let first = launch.able(queue).next();
        let first = first.ok_or(CL_INVALID_PROGRAM_EXECUTABLE)?;
        if queue.fits() {
            let checked = |place: &usize| *place == first || launch.shape_of(*place).is_some();
            for place in launch.able(queue).filter(checked) {
                let shape = launch.shape_at(place)?;
                launch.kernel.check_shape(&shape, place)?;
            }
        }
        let uses = match queue.context.is_single() {
            true => Vec::new(),
            false => {
                // A kernel may write a part of what it may write, so that is read as well.
                let used = |(index, mem)| Use::whole(mem, launch.may_write((index, mem)));
                launch.mems().map(used).collect()
            }
        };
        Ok(Work::launch(uses, launch))
    };
    // SAFETY: OpenCL's promises about the events.
    unsafe { enqueue(queue, asked, work) }
}

/// `clEnqueueTask`.
pub unsafe extern "C" fn enqueue_task(
    queue: cl_command_queue,
    kernel: cl_kernel,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let one = [1_usize];
    let (one, none) = (one.as_ptr(), ptr::null());
    // SAFETY: the same promises; the sizes live during the call.
    unsafe { enqueue_nd_range_kernel(queue, kernel, 1, none, one, one, count, events, event) }
}

/// `clEnqueueNativeKernel`. A device that stands for several has functions of the program only
/// if all its members do.
pub unsafe extern "C" fn enqueue_native_kernel(
    queue: cl_command_queue,
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    arguments: *mut c_void,
    size: usize,
    number: cl_uint,
    list: *const cl_mem,
    locations: *mut *const c_void,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let asked = Asked::new(CL_COMMAND_NATIVE_KERNEL, count, events, event);
    let work = |queue: &Ref<Queue>| {
        let function = function.ok_or(CL_INVALID_VALUE)?;
        let lists = [list.is_null(), locations.is_null()];
        if arguments.is_null() != (size == 0)
            || (size == 0 && number > 0)
            || lists != [number == 0; 2]
        {
            return Err(CL_INVALID_VALUE);
        }
        let able = queue.device.common(CL_DEVICE_EXECUTION_CAPABILITIES)?;
        if able & CL_EXEC_NATIVE_KERNEL == 0 {
            return Err(CL_INVALID_OPERATION);
        }
        // SAFETY: OpenCL's promise about the list.
        let mems = unsafe { handle::list::<Mem>(number, list)? };
        // Where in the arguments memory objects are.
        let mut offsets = Vec::new();
        for index in 0..number as usize {
            // SAFETY: OpenCL's promise: a location for each memory object.
            let location = unsafe { *locations.add(index) };
            let offset = (location as usize).checked_sub(arguments as usize);
            let fits = |offset: &usize| offset + size_of::<cl_mem>() <= size;
            offsets.push(offset.filter(fits).ok_or(CL_INVALID_VALUE)?);
        }
        let bytes = match size {
            0 => Vec::new(),
            // SAFETY: OpenCL's promise about the arguments.
            _ => unsafe { std::slice::from_raw_parts(arguments.cast::<u8>(), size) }.to_vec(),
        };
        let bytes = Mutex::<_, NATIVE_KERNEL>::new(bytes);
        let uses = mems.iter().map(|mem| Use::whole(mem, true));
        Work::new(uses.collect::<Vec<_>>(), move |call, mem| {
            let mut bytes = bytes.lock();
            let mems: Vec<cl_mem> = (0..offsets.len()).map(mem).collect::<Fallible<_>>()?;
            let base = match bytes.is_empty() {
                true => ptr::null_mut(),
                false => bytes.as_mut_ptr(),
            };
            let location = |at: &usize| base.wrapping_add(*at).cast_const().cast();
            let mut locations: Vec<*const c_void> = offsets.iter().map(location).collect();
            let (list, places) = match mems.is_empty() {
                true => (ptr::null(), ptr::null_mut()),
                false => (mems.as_ptr(), locations.as_mut_ptr()),
            };
            let (function, number) = (Some(function), mems.len() as cl_uint);
            let (from, size) = (base.cast(), bytes.len());
            give!(
                call,
                clEnqueueNativeKernel(function, from, size, number, list, places)
            )
        })
    };
    // SAFETY: OpenCL's promises about the events.
    unsafe { enqueue(queue, asked, work) }
}

//! Functions of the program that run as commands. A device that stands for several has
//! them only if all its members do.

use libc::c_void;
use opencl_sys::*;

use crate::boundary::status;
use crate::command::{Action, Command, Use};
use crate::handle::{self, Ref};
use crate::lane::{Lane, Waits};
use crate::lock::{Mutex, NATIVE_KERNEL};
use crate::mem::Mem;
use crate::queue::Queue;
use crate::status::{Fallible, check, driver};
use crate::submit::submit;

type Function = unsafe extern "C" fn(*mut c_void);

struct NativeKernel {
    function: Function,
    /// The program's arguments, and where in them memory objects are.
    arguments: Mutex<Vec<u8>, NATIVE_KERNEL>,
    mems: Vec<Ref<Mem>>,
    offsets: Vec<usize>,
}

impl Action for NativeKernel {
    fn enqueue(&self, lane: &Lane, waits: &Waits, event: *mut cl_event) -> Fallible<()> {
        let mut bytes = self.arguments.lock();
        let at = |mem: &Ref<Mem>| mem.at(lane.place);
        let mems = self
            .mems
            .iter()
            .map(at)
            .collect::<Fallible<Vec<cl_mem>>>()?;
        let base = match bytes.is_empty() {
            true => std::ptr::null_mut(),
            false => bytes.as_mut_ptr(),
        };
        let locations = self
            .offsets
            .iter()
            .map(|offset| base.wrapping_add(*offset).cast_const().cast());
        let mut locations: Vec<*const c_void> = locations.collect();
        let (list, places) = match mems.is_empty() {
            true => (std::ptr::null(), std::ptr::null_mut()),
            false => (mems.as_ptr(), locations.as_mut_ptr()),
        };
        check(driver!(
            lane.table,
            clEnqueueNativeKernel(
                lane.queue,
                Some(self.function),
                base.cast(),
                bytes.len(),
                mems.len() as cl_uint,
                list,
                places,
                waits.count(),
                waits.events(),
                event
            )
        ))
    }
}

/// `clEnqueueNativeKernel`.
pub unsafe extern "C" fn enqueue_native_kernel(
    queue: cl_command_queue,
    function: Option<Function>,
    arguments: *mut c_void,
    size: usize,
    number: cl_uint,
    list: *const cl_mem,
    locations: *mut *const c_void,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    status(|| {
        let queue = Ref::<Queue>::of(queue)?;
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
        let uses = mems.iter().map(|mem| Use {
            writes: true,
            ..Use::read(mem, 0..mem.size)
        });
        let uses = uses.collect();
        let action = NativeKernel {
            function,
            arguments: Mutex::new(bytes),
            mems,
            offsets,
        };
        let kind = CL_COMMAND_NATIVE_KERNEL;
        // SAFETY: OpenCL's promises about the events.
        unsafe {
            let command = Command::new(&queue, kind, (count, events), uses, action)?;
            submit(&queue, command, event, false)
        }
    })
}

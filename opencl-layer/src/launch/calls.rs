//! The functions that launch kernels.

use std::ptr;
use std::sync::OnceLock;

use opencl_sys::*;

use super::Launch;
use crate::argument::Argument;
use crate::boundary::status;
use crate::command::{Action, Command, Use};
use crate::form::Form;
use crate::handle::Ref;
use crate::kernel::{Kernel, Set};
use crate::lane::{Lane, Waits};
use crate::queue::Queue;
use crate::shape::Shape;
use crate::status::Fallible;
use crate::submit::submit;

impl Action for Launch {
    fn enqueue(&self, lane: &Lane, waits: &Waits, event: *mut cl_event) -> Fallible<()> {
        let shape = self.shape_at(lane.place)?;
        self.range(lane, Form::Whole, &shape, &[], waits, event)
    }

    fn launch(&self) -> Option<&Launch> {
        Some(self)
    }
}

/// The bytes that a launch uses. A kernel may write a part of what it may write, so that
/// is read as well.
fn uses(kernel: &Kernel, arguments: &[Set]) -> Vec<Use> {
    let writes = |index: usize| kernel.may_write(index);
    let of = |(index, set): (usize, &Set)| match &set.argument {
        Argument::Mem(mem) => Some(Use {
            mem: mem.clone(),
            range: 0..mem.size,
            reads: true,
            writes: mem.flags & CL_MEM_READ_ONLY == 0 && writes(index),
            by_host: false,
        }),
        _ => None,
    };
    arguments.iter().enumerate().filter_map(of).collect()
}

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
    status(|| {
        let queue = Ref::<Queue>::of(queue)?;
        let kernel = Ref::<Kernel>::of(kernel)?;
        if kernel.program.context != queue.context {
            return Err(CL_INVALID_CONTEXT);
        }
        // SAFETY: OpenCL's promises about the lists.
        let shape = unsafe { Shape::new(dimensions, offset, global, local)? };
        let arguments = kernel.arguments()?;
        let uses = match queue.context.is_single() {
            true => Vec::new(),
            false => uses(&kernel, &arguments),
        };
        let action = Launch {
            shapes: kernel.shapes(),
            kernel,
            arguments,
            shape,
            record: OnceLock::new(),
            division: OnceLock::new(),
            refusal: OnceLock::new(),
        };
        let first = action.able(&queue).next();
        let first = first.ok_or(CL_INVALID_PROGRAM_EXECUTABLE)?;
        if queue.fits() {
            let checked = |place: &usize| *place == first || action.shape_of(*place).is_some();
            for place in action.able(&queue).filter(checked) {
                let shape = action.shape_at(place)?;
                action.kernel.check_shape(&shape, place)?;
            }
        }
        let kind = CL_COMMAND_NDRANGE_KERNEL;
        // SAFETY: OpenCL's promises about the events.
        unsafe {
            let command = Command::new(&queue, kind, (count, events), uses, action)?;
            submit(&queue, command, event, false)
        }
    })
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

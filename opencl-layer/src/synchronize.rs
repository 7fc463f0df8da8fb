//! Markers, barriers and migrations.

use std::ptr;

use opencl_sys::*;

use crate::call::enqueue as give;
use crate::command::{Use, Work};
use crate::handle::{self, Ref};
use crate::mem::Mem;
use crate::queue::Queue;
use crate::status::Fallible;
use crate::submit::{Asked, enqueue};

fn marker(_queue: &Ref<Queue>) -> Fallible<Work> {
    Work::nothing([])
}

fn barrier(_queue: &Ref<Queue>) -> Fallible<Work> {
    Work::new([], |call, _| give!(call, clEnqueueBarrierWithWaitList()))
}

/// `clEnqueueMarkerWithWaitList`.
pub unsafe extern "C" fn enqueue_marker_with_wait_list(
    queue: cl_command_queue,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let asked = Asked::new(CL_COMMAND_MARKER, count, events, event);
    // SAFETY: OpenCL's promises about the events.
    unsafe { enqueue(queue, asked, marker) }
}

/// `clEnqueueBarrierWithWaitList`.
pub unsafe extern "C" fn enqueue_barrier_with_wait_list(
    queue: cl_command_queue,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let asked = Asked::new(CL_COMMAND_BARRIER, count, events, event);
    // SAFETY: OpenCL's promises about the events.
    unsafe { enqueue(queue, asked, barrier) }
}

/// `clEnqueueMarker`.
pub unsafe extern "C" fn enqueue_marker(queue: cl_command_queue, event: *mut cl_event) -> cl_int {
    if event.is_null() {
        return CL_INVALID_VALUE;
    }
    // SAFETY: OpenCL's promise about the event.
    unsafe { enqueue_marker_with_wait_list(queue, 0, ptr::null(), event) }
}

/// `clEnqueueBarrier`.
pub unsafe extern "C" fn enqueue_barrier(queue: cl_command_queue) -> cl_int {
    // SAFETY: no events.
    unsafe { enqueue_barrier_with_wait_list(queue, 0, ptr::null(), ptr::null_mut()) }
}

/// `clEnqueueWaitForEvents`.
pub unsafe extern "C" fn enqueue_wait_for_events(
    queue: cl_command_queue,
    count: cl_uint,
    events: *const cl_event,
) -> cl_int {
    if count == 0 || events.is_null() {
        return CL_INVALID_VALUE;
    }
    // SAFETY: OpenCL's promises about the events.
    match unsafe { enqueue_barrier_with_wait_list(queue, count, events, ptr::null_mut()) } {
        CL_INVALID_EVENT_WAIT_LIST => CL_INVALID_EVENT,
        code => code,
    }
}

/// `clEnqueueMigrateMemObjects`: data go where commands need them; this brings them to
/// the queue's place before.
pub unsafe extern "C" fn enqueue_migrate_mem_objects(
    queue: cl_command_queue,
    number: cl_uint,
    mems: *const cl_mem,
    flags: cl_mem_migration_flags,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let asked = Asked::new(CL_COMMAND_MIGRATE_MEM_OBJECTS, count, events, event);
    let work = |queue: &Ref<Queue>| {
        let known = CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
        if number == 0 || mems.is_null() || flags & !known != 0 {
            return Err(CL_INVALID_VALUE);
        }
        // SAFETY: OpenCL's promise about the list.
        let mut mems = unsafe { handle::list::<Mem>(number, mems)? };
        if mems.iter().any(|mem| mem.context != queue.context) {
            return Err(CL_INVALID_CONTEXT);
        }
        mems.retain(|_| flags == 0);
        let uses = mems.iter().map(|mem| Use::read(mem, 0..mem.size));
        Work::nothing(uses.collect::<Vec<_>>())
    };
    // SAFETY: OpenCL's promises about the events.
    unsafe { enqueue(queue, asked, work) }
}

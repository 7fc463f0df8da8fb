//! Markers, barriers and migrations.

use opencl_sys::*;

use crate::boundary::status;
use crate::command::{Action, Command, Use};
use crate::handle::{self, Ref};
use crate::lane::{Lane, Waits};
use crate::mem::Mem;
use crate::queue::Queue;
use crate::status::{Fallible, check, driver};
use crate::submit::submit;

pub struct Marker;

impl Action for Marker {
    fn enqueue(&self, lane: &Lane, waits: &Waits, event: *mut cl_event) -> Fallible<()> {
        check(driver!(
            lane.table,
            clEnqueueMarkerWithWaitList(lane.queue, waits.count(), waits.events(), event)
        ))
    }
}

struct Barrier;

impl Action for Barrier {
    fn enqueue(&self, lane: &Lane, waits: &Waits, event: *mut cl_event) -> Fallible<()> {
        check(driver!(
            lane.table,
            clEnqueueBarrierWithWaitList(lane.queue, waits.count(), waits.events(), event)
        ))
    }
}

/// # Safety
/// As OpenCL promises about the events.
unsafe fn enqueue(
    queue: cl_command_queue,
    kind: cl_command_type,
    list: (cl_uint, *const cl_event),
    event: *mut cl_event,
    action: impl Action + 'static,
) -> Fallible<()> {
    let queue = Ref::<Queue>::of(queue)?;
    // SAFETY: promised by the caller.
    unsafe {
        let command = Command::new(&queue, kind, list, Vec::new(), action)?;
        submit(&queue, command, event, false)
    }
}

/// `clEnqueueMarkerWithWaitList`.
pub unsafe extern "C" fn enqueue_marker_with_wait_list(
    queue: cl_command_queue,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    // SAFETY: OpenCL's promises about the events.
    status(|| unsafe { enqueue(queue, CL_COMMAND_MARKER, (count, events), event, Marker) })
}

/// `clEnqueueBarrierWithWaitList`.
pub unsafe extern "C" fn enqueue_barrier_with_wait_list(
    queue: cl_command_queue,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    // SAFETY: OpenCL's promises about the events.
    status(|| unsafe { enqueue(queue, CL_COMMAND_BARRIER, (count, events), event, Barrier) })
}

/// `clEnqueueMarker`.
pub unsafe extern "C" fn enqueue_marker(queue: cl_command_queue, event: *mut cl_event) -> cl_int {
    status(|| {
        if event.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        let none = (0, std::ptr::null());
        // SAFETY: OpenCL's promise about the event.
        unsafe { enqueue(queue, CL_COMMAND_MARKER, none, event, Marker) }
    })
}

/// `clEnqueueBarrier`.
pub unsafe extern "C" fn enqueue_barrier(queue: cl_command_queue) -> cl_int {
    let (none, event) = ((0, std::ptr::null()), std::ptr::null_mut());
    // SAFETY: no events.
    status(|| unsafe { enqueue(queue, CL_COMMAND_BARRIER, none, event, Barrier) })
}

/// `clEnqueueWaitForEvents`.
pub unsafe extern "C" fn enqueue_wait_for_events(
    queue: cl_command_queue,
    count: cl_uint,
    events: *const cl_event,
) -> cl_int {
    status(|| {
        if count == 0 || events.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        let none = std::ptr::null_mut();
        // SAFETY: OpenCL's promises about the events.
        let result = unsafe { enqueue(queue, CL_COMMAND_BARRIER, (count, events), none, Barrier) };
        result.map_err(|code| match code {
            CL_INVALID_EVENT_WAIT_LIST => CL_INVALID_EVENT,
            code => code,
        })
    })
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
    status(|| {
        let queue = Ref::<Queue>::of(queue)?;
        let known = CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
        if number == 0 || mems.is_null() || flags & !known != 0 {
            return Err(CL_INVALID_VALUE);
        }
        // SAFETY: OpenCL's promise about the list.
        let mems = unsafe { handle::list::<Mem>(number, mems)? };
        let moves = flags == 0;
        let uses = mems
            .iter()
            .filter(|_| moves)
            .map(|mem| Use::read(mem, 0..mem.size));
        let kind = CL_COMMAND_MIGRATE_MEM_OBJECTS;
        // SAFETY: OpenCL's promises about the events.
        unsafe {
            let command = Command::new(&queue, kind, (count, events), uses.collect(), Marker)?;
            if mems.iter().any(|mem| mem.context != queue.context) {
                return Err(CL_INVALID_CONTEXT);
            }
            submit(&queue, command, event, false)
        }
    })
}

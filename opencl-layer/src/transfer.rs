//! Functions that read, write, copy and fill buffers, and boxes of them.

use std::ops::Range;
use std::slice;

use libc::c_void;
use opencl_sys::*;

use crate::call::enqueue as give;
use crate::command::{Pointer, Use, Work};
use crate::handle::Ref;
use crate::mem::Mem;
use crate::queue::Queue;
use crate::rect::{Rect, overlap};
use crate::status::Fallible;
use crate::submit::{Asked, enqueue};

/// A buffer of a queue's context.
pub fn buffer_of(queue: &Queue, handle: cl_mem) -> Fallible<Ref<Mem>> {
    Mem::of(&queue.context, handle, |mem| {
        mem.kind == CL_MEM_OBJECT_BUFFER
    })
}

/// A buffer of a queue's context, and a range within it.
pub fn part_of(
    queue: &Queue,
    handle: cl_mem,
    offset: usize,
    size: usize,
) -> Fallible<(Ref<Mem>, Range<usize>)> {
    let mem = buffer_of(queue, handle)?;
    match offset.checked_add(size) {
        Some(end) if end <= mem.size && size > 0 => Ok((mem, offset..end)),
        _ => Err(CL_INVALID_VALUE),
    }
}

/// `clEnqueueReadBuffer`.
pub unsafe extern "C" fn enqueue_read_buffer(
    queue: cl_command_queue,
    handle: cl_mem,
    blocking: cl_bool,
    offset: usize,
    size: usize,
    to: *mut c_void,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let asked = Asked::new(CL_COMMAND_READ_BUFFER, count, events, event).blocking(blocking);
    let work = |queue: &Ref<Queue>| {
        let (mem, range) = part_of(queue, handle, offset, size)?;
        let to = Pointer::new(to)?;
        mem.check_host_access(CL_MEM_HOST_WRITE_ONLY)?;
        Work::new([Use::read(&mem, range)], move |call, mem| {
            call.read(mem(0)?, offset, size, to.address())
        })
    };
    // SAFETY: OpenCL's promises about the events.
    unsafe { enqueue(queue, asked, work) }
}

/// `clEnqueueWriteBuffer`.
pub unsafe extern "C" fn enqueue_write_buffer(
    queue: cl_command_queue,
    handle: cl_mem,
    blocking: cl_bool,
    offset: usize,
    size: usize,
    from: *const c_void,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let asked = Asked::new(CL_COMMAND_WRITE_BUFFER, count, events, event).blocking(blocking);
    let work = |queue: &Ref<Queue>| {
        let (mem, range) = part_of(queue, handle, offset, size)?;
        let from = Pointer::new(from)?;
        mem.check_host_access(CL_MEM_HOST_READ_ONLY)?;
        Work::new([Use::write(&mem, range)], move |call, mem| {
            call.write(mem(0)?, offset, size, from.address())
        })
    };
    // SAFETY: OpenCL's promises about the events.
    unsafe { enqueue(queue, asked, work) }
}

/// `clEnqueueCopyBuffer`.
pub unsafe extern "C" fn enqueue_copy_buffer(
    queue: cl_command_queue,
    from: cl_mem,
    to: cl_mem,
    from_offset: usize,
    to_offset: usize,
    size: usize,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let asked = Asked::new(CL_COMMAND_COPY_BUFFER, count, events, event);
    let work = |queue: &Ref<Queue>| {
        let (from, read) = part_of(queue, from, from_offset, size)?;
        let (to, written) = part_of(queue, to, to_offset, size)?;
        if from.overlaps(read.clone(), &to, written.clone()) {
            return Err(CL_MEM_COPY_OVERLAP);
        }
        let uses = [Use::read(&from, read), Use::write(&to, written)];
        Work::new(uses, move |call, mem| {
            call.copy((mem(0)?, from_offset), (mem(1)?, to_offset), size)
        })
    };
    // SAFETY: OpenCL's promises about the events.
    unsafe { enqueue(queue, asked, work) }
}

/// `clEnqueueFillBuffer`.
pub unsafe extern "C" fn enqueue_fill_buffer(
    queue: cl_command_queue,
    handle: cl_mem,
    pattern: *const c_void,
    length: usize,
    offset: usize,
    size: usize,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let asked = Asked::new(CL_COMMAND_FILL_BUFFER, count, events, event);
    let work = |queue: &Ref<Queue>| {
        let (mem, range) = part_of(queue, handle, offset, size)?;
        let known = length.is_power_of_two() && length <= 128;
        let fits = known && offset.is_multiple_of(length) && size.is_multiple_of(length);
        if pattern.is_null() || !fits {
            return Err(CL_INVALID_VALUE);
        }
        // SAFETY: OpenCL's promise about the pattern.
        let pattern = unsafe { slice::from_raw_parts(pattern.cast::<u8>(), length) }.to_vec();
        Work::new([Use::write(&mem, range)], move |call, mem| {
            let (mem, from) = (mem(0)?, pattern.as_ptr().cast());
            give!(call, clEnqueueFillBuffer(mem, from, length, offset, size))
        })
    };
    // SAFETY: OpenCL's promises about the events.
    unsafe { enqueue(queue, asked, work) }
}

/// Where a box begins, and the pitches of what it lies in.
type Corner = (*const usize, usize, usize);

/// Reads or writes a box of a buffer.
///
/// # Safety
/// The lists are null or have three numbers.
unsafe fn box_work(
    queue: &Queue,
    handle: cl_mem,
    ((origin, row, slice), (host_origin, host_row, host_slice)): (Corner, Corner),
    region: *const usize,
    (pointer, reads): (*const c_void, bool),
) -> Fallible<Work> {
    // SAFETY: promised by the caller.
    let rect = unsafe { Rect::new(origin, region, row, slice)? };
    // SAFETY: as above.
    let host = unsafe { Rect::new(host_origin, region, host_row, host_slice)? };
    let mem = buffer_of(queue, handle)?;
    let (used, refused) = match reads {
        true => (Use::read(&mem, rect.within(&mem)?), CL_MEM_HOST_WRITE_ONLY),
        false => (rect.write(&mem)?, CL_MEM_HOST_READ_ONLY),
    };
    let pointer = Pointer::new(pointer)?;
    mem.check_host_access(refused)?;
    Work::new([used], move |call, mem| {
        let (mem, pointer, wait) = (mem(0)?, pointer.address(), call.blocking);
        let (at, there, region) = rect.lists(&host);
        let Rect { row, slice, .. } = rect;
        let (far_row, far_slice) = (host.row, host.slice);
        match reads {
            true => give!(
                call,
                clEnqueueReadBufferRect(
                    mem, wait, at, there, region, row, slice, far_row, far_slice, pointer
                )
            ),
            false => give!(
                call,
                clEnqueueWriteBufferRect(
                    mem, wait, at, there, region, row, slice, far_row, far_slice, pointer
                )
            ),
        }
    })
}

/// `clEnqueueReadBufferRect`.
pub unsafe extern "C" fn enqueue_read_buffer_rect(
    queue: cl_command_queue,
    handle: cl_mem,
    blocking: cl_bool,
    origin: *const usize,
    host_origin: *const usize,
    region: *const usize,
    row: usize,
    slice: usize,
    host_row: usize,
    host_slice: usize,
    to: *mut c_void,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let asked = Asked::new(CL_COMMAND_READ_BUFFER_RECT, count, events, event).blocking(blocking);
    let work = |queue: &Ref<Queue>| {
        let host = (host_origin, host_row, host_slice);
        let corners = ((origin, row, slice), host);
        // SAFETY: OpenCL's promises about the lists.
        unsafe { box_work(queue, handle, corners, region, (to.cast_const(), true)) }
    };
    // SAFETY: OpenCL's promises about the events.
    unsafe { enqueue(queue, asked, work) }
}

/// `clEnqueueWriteBufferRect`.
pub unsafe extern "C" fn enqueue_write_buffer_rect(
    queue: cl_command_queue,
    handle: cl_mem,
    blocking: cl_bool,
    origin: *const usize,
    host_origin: *const usize,
    region: *const usize,
    row: usize,
    slice: usize,
    host_row: usize,
    host_slice: usize,
    from: *const c_void,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let asked = Asked::new(CL_COMMAND_WRITE_BUFFER_RECT, count, events, event).blocking(blocking);
    let work = |queue: &Ref<Queue>| {
        let host = (host_origin, host_row, host_slice);
        let corners = ((origin, row, slice), host);
        // SAFETY: OpenCL's promises about the lists.
        unsafe { box_work(queue, handle, corners, region, (from, false)) }
    };
    // SAFETY: OpenCL's promises about the events.
    unsafe { enqueue(queue, asked, work) }
}

/// `clEnqueueCopyBufferRect`.
pub unsafe extern "C" fn enqueue_copy_buffer_rect(
    queue: cl_command_queue,
    from: cl_mem,
    to: cl_mem,
    from_origin: *const usize,
    to_origin: *const usize,
    region: *const usize,
    from_row: usize,
    from_slice: usize,
    to_row: usize,
    to_slice: usize,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let asked = Asked::new(CL_COMMAND_COPY_BUFFER_RECT, count, events, event);
    let work = |queue: &Ref<Queue>| {
        let (from, to) = (buffer_of(queue, from)?, buffer_of(queue, to)?);
        // SAFETY: OpenCL's promises about the lists.
        let source = unsafe { Rect::new(from_origin, region, from_row, from_slice)? };
        // SAFETY: as above.
        let target = unsafe { Rect::new(to_origin, region, to_row, to_slice)? };
        let uses = [Use::read(&from, source.within(&from)?), target.write(&to)?];
        if from == to {
            if source.row != target.row || source.slice != target.slice {
                return Err(CL_INVALID_VALUE);
            }
            if overlap(&source, &target) {
                return Err(CL_MEM_COPY_OVERLAP);
            }
        }
        Work::new(uses, move |call, mem| {
            let (from, to, (at, there, region)) = (mem(0)?, mem(1)?, source.lists(&target));
            let Rect { row, slice, .. } = source;
            let (to_row, to_slice) = (target.row, target.slice);
            give!(
                call,
                clEnqueueCopyBufferRect(from, to, at, there, region, row, slice, to_row, to_slice)
            )
        })
    };
    // SAFETY: OpenCL's promises about the events.
    unsafe { enqueue(queue, asked, work) }
}

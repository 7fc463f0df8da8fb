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

// Boxes of buffers.
//
// Elsewhere a box is the range of bytes from its first to its last. A command that
// writes a box leaves the bytes between its rows as they are, so it reads them too.

pub type Three = [usize; 3];

/// A box of bytes in a buffer or in host memory.
#[derive(Clone, Copy)]
pub struct Rect {
    origin: Three,
    region: Three,
    pub row: usize,
    pub slice: usize,
}

impl Rect {
    /// # Safety
    /// Both lists are null or have three numbers.
    pub unsafe fn new(
        origin: *const usize,
        region: *const usize,
        row: usize,
        slice: usize,
    ) -> Fallible<Self> {
        // SAFETY: promised by the caller.
        let (origin, region) = unsafe { (three(origin)?, three(region)?) };
        if region.contains(&0) || (row != 0 && row < region[0]) {
            return Err(CL_INVALID_VALUE);
        }
        let row = if row == 0 { region[0] } else { row };
        let least = region[1].checked_mul(row).ok_or(CL_INVALID_VALUE)?;
        if slice != 0 && (slice < least || !slice.is_multiple_of(row)) {
            return Err(CL_INVALID_VALUE);
        }
        Ok(Self {
            origin,
            region,
            row,
            slice: if slice == 0 { least } else { slice },
        })
    }

    /// From the first byte to the last.
    fn range(&self) -> Option<Range<usize>> {
        let at = |point: Three| {
            let slices = point[2].checked_mul(self.slice)?;
            slices
                .checked_add(point[1].checked_mul(self.row)?)?
                .checked_add(point[0])
        };
        let begin = at(self.origin)?;
        let last = [self.region[0], self.region[1] - 1, self.region[2] - 1];
        Some(begin..begin.checked_add(at(last)?)?)
    }

    /// The range, which must be within a buffer.
    pub fn within(&self, mem: &Mem) -> Fallible<Range<usize>> {
        let range = self.range().filter(|range| range.end <= mem.size);
        range.ok_or(CL_INVALID_VALUE)
    }

    /// Whether no byte lies between the rows.
    fn is_dense(&self) -> bool {
        let bytes = self.region.iter().product::<usize>();
        self.range().is_some_and(|range| range.len() == bytes)
    }

    /// How a command uses a buffer that writes the box.
    pub fn write(&self, mem: &Ref<Mem>) -> Fallible<Use> {
        let range = self.within(mem)?;
        Ok(Use::new(mem, range, (!self.is_dense(), true)))
    }

    /// Where this box and another one begin, and their region, as drivers take them.
    pub fn lists(&self, other: &Self) -> (*const usize, *const usize, *const usize) {
        (
            self.origin.as_ptr(),
            other.origin.as_ptr(),
            self.region.as_ptr(),
        )
    }
}

/// # Safety
/// `list` is null or has three numbers.
pub unsafe fn three(list: *const usize) -> Fallible<Three> {
    if list.is_null() {
        return Err(CL_INVALID_VALUE);
    }
    // SAFETY: promised by the caller.
    Ok(unsafe { list.cast::<Three>().read_unaligned() })
}

/// Whether two boxes of one buffer with the same pitches share bytes. As in OpenCL's own
/// text, boxes that wrap around the ends of rows count as they lie in memory.
fn overlap(source: &Rect, target: &Rect) -> bool {
    let begins = |rect: &Rect| rect.range().map_or(0, |range| range.start);
    let (one, other) = (begins(source), begins(target));
    let meets = |other_row: usize, row: usize| {
        other_row < row + source.region[0] && row < other_row + source.region[0]
    };
    let rows = |begin: usize| {
        let [_, rows, slices] = source.region;
        (0..slices)
            .flat_map(move |z| (0..rows).map(move |y| begin + z * source.slice + y * source.row))
    };
    let (Some(a), Some(b)) = (source.range(), target.range()) else {
        return false;
    };
    if a.end <= b.start || b.end <= a.start {
        return false;
    }
    // Rows begin in ascending order in both boxes, so one walk along both finds a meeting.
    let mut right = rows(other).peekable();
    for row in rows(one) {
        while right
            .next_if(|other| *other + source.region[0] <= row)
            .is_some()
        {}
        if right.peek().is_some_and(|other| meets(*other, row)) {
            return true;
        }
    }
    false
}

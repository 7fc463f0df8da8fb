//! Commands that read, write and copy boxes of buffers.
//!
//! Elsewhere a box is the range of bytes from its first to its last. A command that
//! writes a box leaves the bytes between its rows as they are, so it reads them too.

use std::ops::Range;

use libc::c_void;
use opencl_sys::*;

use crate::boundary::status;
use crate::command::{Action, Command, Use};
use crate::handle::Ref;
use crate::lane::{Lane, Waits};
use crate::mem::Mem;
use crate::queue::Queue;
use crate::status::{Fallible, check, driver};
use crate::submit::submit;
use crate::transfer::{Pointer, buffer_of};

type Three = [usize; 3];

/// A box of bytes in a buffer or in host memory.
#[derive(Clone, Copy)]
struct Rect {
    origin: Three,
    region: Three,
    row: usize,
    slice: usize,
}

impl Rect {
    /// # Safety
    /// Both lists are null or have three numbers.
    unsafe fn new(
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
    fn within(&self, mem: &Mem) -> Fallible<Range<usize>> {
        let range = self.range().filter(|range| range.end <= mem.size);
        range.ok_or(CL_INVALID_VALUE)
    }

    /// Whether no byte lies between the rows.
    fn is_dense(&self) -> bool {
        let bytes = self.region.iter().product::<usize>();
        self.range().is_some_and(|range| range.len() == bytes)
    }

    fn writes(&self, mem: &Ref<Mem>, range: Range<usize>) -> Use {
        Use {
            reads: !self.is_dense(),
            ..Use::write(mem, range)
        }
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

/// Reads or writes a box.
struct Transfer {
    mem: Ref<Mem>,
    rect: Rect,
    host: Rect,
    pointer: Pointer,
    reads: bool,
}

impl Action for Transfer {
    fn enqueue(&self, lane: &Lane, waits: &Waits, event: *mut cl_event) -> Fallible<()> {
        let mem = self.mem.at(lane.place)?;
        let (rect, host, pointer) = (&self.rect, &self.host, self.pointer.address());
        let (origin, outer) = (rect.origin.as_ptr(), host.origin.as_ptr());
        let region = rect.region.as_ptr();
        check(match self.reads {
            true => driver!(
                lane.table,
                clEnqueueReadBufferRect(
                    lane.queue,
                    mem,
                    CL_FALSE,
                    origin,
                    outer,
                    region,
                    rect.row,
                    rect.slice,
                    host.row,
                    host.slice,
                    pointer,
                    waits.count(),
                    waits.events(),
                    event
                )
            ),
            false => driver!(
                lane.table,
                clEnqueueWriteBufferRect(
                    lane.queue,
                    mem,
                    CL_FALSE,
                    origin,
                    outer,
                    region,
                    rect.row,
                    rect.slice,
                    host.row,
                    host.slice,
                    pointer,
                    waits.count(),
                    waits.events(),
                    event
                )
            ),
        })
    }

    fn follows_data(&self) -> bool {
        self.reads
    }
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
    status(|| {
        let queue = Ref::<Queue>::of(queue)?;
        let mem = buffer_of(&queue, handle)?;
        // SAFETY: OpenCL's promises about the lists.
        let (rect, host) = unsafe {
            (
                Rect::new(origin, region, row, slice)?,
                Rect::new(host_origin, region, host_row, host_slice)?,
            )
        };
        let range = rect.within(&mem)?;
        if to.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        if mem.flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS) != 0 {
            return Err(CL_INVALID_OPERATION);
        }
        let uses = vec![Use::read(&mem, range)];
        let pointer = Pointer::new(to);
        let action = Transfer {
            mem,
            rect,
            host,
            pointer,
            reads: true,
        };
        let kind = CL_COMMAND_READ_BUFFER_RECT;
        // SAFETY: OpenCL's promises about the events.
        unsafe {
            let command = Command::new(&queue, kind, (count, events), uses, action)?;
            submit(&queue, command, event, blocking != CL_FALSE)
        }
    })
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
    status(|| {
        let queue = Ref::<Queue>::of(queue)?;
        let mem = buffer_of(&queue, handle)?;
        // SAFETY: OpenCL's promises about the lists.
        let (rect, host) = unsafe {
            (
                Rect::new(origin, region, row, slice)?,
                Rect::new(host_origin, region, host_row, host_slice)?,
            )
        };
        let range = rect.within(&mem)?;
        if from.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        if mem.flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS) != 0 {
            return Err(CL_INVALID_OPERATION);
        }
        let uses = vec![rect.writes(&mem, range)];
        let pointer = Pointer::new(from.cast_mut());
        let action = Transfer {
            mem,
            rect,
            host,
            pointer,
            reads: false,
        };
        let kind = CL_COMMAND_WRITE_BUFFER_RECT;
        // SAFETY: OpenCL's promises about the events.
        unsafe {
            let command = Command::new(&queue, kind, (count, events), uses, action)?;
            submit(&queue, command, event, blocking != CL_FALSE)
        }
    })
}

struct Copy {
    from: Ref<Mem>,
    to: Ref<Mem>,
    source: Rect,
    target: Rect,
}

impl Action for Copy {
    fn enqueue(&self, lane: &Lane, waits: &Waits, event: *mut cl_event) -> Fallible<()> {
        let (from, to) = (self.from.at(lane.place)?, self.to.at(lane.place)?);
        let (source, target) = (&self.source, &self.target);
        check(driver!(
            lane.table,
            clEnqueueCopyBufferRect(
                lane.queue,
                from,
                to,
                source.origin.as_ptr(),
                target.origin.as_ptr(),
                source.region.as_ptr(),
                source.row,
                source.slice,
                target.row,
                target.slice,
                waits.count(),
                waits.events(),
                event
            )
        ))
    }

    fn follows_data(&self) -> bool {
        true
    }
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
    status(|| {
        let queue = Ref::<Queue>::of(queue)?;
        let (from, to) = (buffer_of(&queue, from)?, buffer_of(&queue, to)?);
        // SAFETY: OpenCL's promises about the lists.
        let (source, target) = unsafe {
            (
                Rect::new(from_origin, region, from_row, from_slice)?,
                Rect::new(to_origin, region, to_row, to_slice)?,
            )
        };
        let (read, written) = (source.within(&from)?, target.within(&to)?);
        if from == to {
            if source.row != target.row || source.slice != target.slice {
                return Err(CL_INVALID_VALUE);
            }
            if overlap(&source, &target) {
                return Err(CL_MEM_COPY_OVERLAP);
            }
        }
        let uses = vec![Use::read(&from, read), target.writes(&to, written)];
        let action = Copy {
            from,
            to,
            source,
            target,
        };
        let kind = CL_COMMAND_COPY_BUFFER_RECT;
        // SAFETY: OpenCL's promises about the events.
        unsafe {
            let command = Command::new(&queue, kind, (count, events), uses, action)?;
            submit(&queue, command, event, false)
        }
    })
}

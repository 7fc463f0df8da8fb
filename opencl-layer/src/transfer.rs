//! Commands that read, write, copy and fill buffers, and those that only synchronise.

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

/// A program's memory.
#[derive(Clone, Copy)]
pub struct Pointer(*mut c_void);

impl Pointer {
    pub fn new(address: *mut c_void) -> Self {
        Self(address)
    }

    pub fn address(&self) -> *mut c_void {
        self.0
    }
}

// SAFETY: the program keeps the memory until the command has ended.
unsafe impl Send for Pointer {}

/// A buffer of a queue's context.
pub fn buffer_of(queue: &Queue, handle: cl_mem) -> Fallible<Ref<Mem>> {
    let mem = Ref::<Mem>::of(handle)?;
    if mem.kind != CL_MEM_OBJECT_BUFFER {
        return Err(CL_INVALID_MEM_OBJECT);
    }
    if mem.context != queue.context {
        return Err(CL_INVALID_CONTEXT);
    }
    Ok(mem)
}

/// A buffer of a queue's context, and a range within it.
fn buffer(queue: &Queue, handle: cl_mem, offset: usize, size: usize) -> Fallible<Ref<Mem>> {
    let mem = buffer_of(queue, handle)?;
    match offset.checked_add(size) {
        Some(end) if end <= mem.size && size > 0 => Ok(mem),
        _ => Err(CL_INVALID_VALUE),
    }
}

struct Read {
    mem: Ref<Mem>,
    offset: usize,
    size: usize,
    to: Pointer,
}

impl Action for Read {
    fn enqueue(&self, lane: &Lane, waits: &Waits, event: *mut cl_event) -> Fallible<()> {
        let mem = self.mem.at(lane.place)?;
        check(driver!(
            lane.table,
            clEnqueueReadBuffer(
                lane.queue,
                mem,
                CL_FALSE,
                self.offset,
                self.size,
                self.to.0,
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
    status(|| {
        let queue = Ref::<Queue>::of(queue)?;
        let mem = buffer(&queue, handle, offset, size)?;
        if to.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        if mem.flags & (CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS) != 0 {
            return Err(CL_INVALID_OPERATION);
        }
        let uses = vec![Use::read(&mem, offset..offset + size)];
        let action = Read {
            mem,
            offset,
            size,
            to: Pointer(to),
        };
        let kind = CL_COMMAND_READ_BUFFER;
        // SAFETY: OpenCL's promises about the events.
        unsafe {
            let command = Command::new(&queue, kind, (count, events), uses, action)?;
            submit(&queue, command, event, blocking != CL_FALSE)
        }
    })
}

struct Write {
    mem: Ref<Mem>,
    offset: usize,
    size: usize,
    from: Pointer,
}

impl Action for Write {
    fn enqueue(&self, lane: &Lane, waits: &Waits, event: *mut cl_event) -> Fallible<()> {
        let mem = self.mem.at(lane.place)?;
        check(driver!(
            lane.table,
            clEnqueueWriteBuffer(
                lane.queue,
                mem,
                CL_FALSE,
                self.offset,
                self.size,
                self.from.0,
                waits.count(),
                waits.events(),
                event
            )
        ))
    }
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
    status(|| {
        let queue = Ref::<Queue>::of(queue)?;
        let mem = buffer(&queue, handle, offset, size)?;
        if from.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        if mem.flags & (CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS) != 0 {
            return Err(CL_INVALID_OPERATION);
        }
        let uses = vec![Use::write(&mem, offset..offset + size)];
        let action = Write {
            mem,
            offset,
            size,
            from: Pointer(from.cast_mut()),
        };
        let kind = CL_COMMAND_WRITE_BUFFER;
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
    from_offset: usize,
    to_offset: usize,
    size: usize,
}

impl Action for Copy {
    fn enqueue(&self, lane: &Lane, waits: &Waits, event: *mut cl_event) -> Fallible<()> {
        let (from, to) = (self.from.at(lane.place)?, self.to.at(lane.place)?);
        check(driver!(
            lane.table,
            clEnqueueCopyBuffer(
                lane.queue,
                from,
                to,
                self.from_offset,
                self.to_offset,
                self.size,
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
    status(|| {
        let queue = Ref::<Queue>::of(queue)?;
        let from = buffer(&queue, from, from_offset, size)?;
        let to = buffer(&queue, to, to_offset, size)?;
        if from.overlaps(
            from_offset..from_offset + size,
            &to,
            to_offset..to_offset + size,
        ) {
            return Err(CL_MEM_COPY_OVERLAP);
        }
        let uses = vec![
            Use::read(&from, from_offset..from_offset + size),
            Use::write(&to, to_offset..to_offset + size),
        ];
        let action = Copy {
            from,
            to,
            from_offset,
            to_offset,
            size,
        };
        let kind = CL_COMMAND_COPY_BUFFER;
        // SAFETY: OpenCL's promises about the events.
        unsafe {
            let command = Command::new(&queue, kind, (count, events), uses, action)?;
            submit(&queue, command, event, false)
        }
    })
}

struct Fill {
    mem: Ref<Mem>,
    pattern: Vec<u8>,
    offset: usize,
    size: usize,
}

impl Action for Fill {
    fn enqueue(&self, lane: &Lane, waits: &Waits, event: *mut cl_event) -> Fallible<()> {
        let mem = self.mem.at(lane.place)?;
        check(driver!(
            lane.table,
            clEnqueueFillBuffer(
                lane.queue,
                mem,
                self.pattern.as_ptr().cast(),
                self.pattern.len(),
                self.offset,
                self.size,
                waits.count(),
                waits.events(),
                event
            )
        ))
    }
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
    status(|| {
        let queue = Ref::<Queue>::of(queue)?;
        let mem = buffer(&queue, handle, offset, size)?;
        let known = [1, 2, 4, 8, 16, 32, 64, 128].contains(&length);
        if pattern.is_null()
            || !known
            || !offset.is_multiple_of(length)
            || !size.is_multiple_of(length)
        {
            return Err(CL_INVALID_VALUE);
        }
        let uses = vec![Use::write(&mem, offset..offset + size)];
        // SAFETY: OpenCL's promise about the pattern.
        let pattern = unsafe { std::slice::from_raw_parts(pattern.cast(), length) }.to_vec();
        let action = Fill {
            mem,
            pattern,
            offset,
            size,
        };
        let kind = CL_COMMAND_FILL_BUFFER;
        // SAFETY: OpenCL's promises about the events.
        unsafe {
            let command = Command::new(&queue, kind, (count, events), uses, action)?;
            submit(&queue, command, event, false)
        }
    })
}

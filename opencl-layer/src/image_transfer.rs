//! Commands that read, write, copy and fill images.

use libc::c_void;
use opencl_sys::*;

use crate::boundary::status;
use crate::command::{Action, Command, Use};
use crate::handle::Ref;
use crate::image::image_of;
use crate::lane::{Lane, Waits};
use crate::mem::Mem;
use crate::queue::Queue;
use crate::rect::three;
use crate::status::{Fallible, check, driver};
use crate::submit::submit;
use crate::transfer::{Pointer, buffer_of};

type Three = [usize; 3];

/// An image is used as a whole: its bytes are where it lives and nowhere else.
pub fn whole(mem: &Ref<Mem>, writes: bool) -> Use {
    Use {
        writes,
        ..Use::read(mem, 0..mem.size)
    }
}

/// What a command does with a part of an image.
enum Work {
    Read {
        to: Pointer,
        row: usize,
        slice: usize,
    },
    Write {
        from: Pointer,
        row: usize,
        slice: usize,
    },
    Fill {
        color: [u8; 16],
    },
    Copy {
        to: Ref<Mem>,
        at: Three,
    },
    ToBuffer {
        to: Ref<Mem>,
        offset: usize,
    },
    FromBuffer {
        from: Ref<Mem>,
        offset: usize,
    },
}

struct ImageCommand {
    image: Ref<Mem>,
    origin: Three,
    region: Three,
    work: Work,
}

impl Action for ImageCommand {
    fn enqueue(&self, lane: &Lane, waits: &Waits, event: *mut cl_event) -> Fallible<()> {
        let image = self.image.at(lane.place)?;
        let (origin, region) = (self.origin.as_ptr(), self.region.as_ptr());
        let (count, events, table) = (waits.count(), waits.events(), lane.table);
        let queue = lane.queue;
        check(match &self.work {
            Work::Read { to, row, slice } => driver!(
                table,
                clEnqueueReadImage(
                    queue,
                    image,
                    CL_FALSE,
                    origin,
                    region,
                    *row,
                    *slice,
                    to.address(),
                    count,
                    events,
                    event
                )
            ),
            Work::Write { from, row, slice } => driver!(
                table,
                clEnqueueWriteImage(
                    queue,
                    image,
                    CL_FALSE,
                    origin,
                    region,
                    *row,
                    *slice,
                    from.address(),
                    count,
                    events,
                    event
                )
            ),
            Work::Fill { color } => {
                let color = color.as_ptr().cast();
                driver!(
                    table,
                    clEnqueueFillImage(queue, image, color, origin, region, count, events, event)
                )
            }
            Work::Copy { to, at } => {
                let (to, at) = (to.at(lane.place)?, at.as_ptr());
                driver!(
                    table,
                    clEnqueueCopyImage(queue, image, to, origin, at, region, count, events, event)
                )
            }
            Work::ToBuffer { to, offset } => {
                let to = to.at(lane.place)?;
                driver!(
                    table,
                    clEnqueueCopyImageToBuffer(
                        queue, image, to, origin, region, *offset, count, events, event
                    )
                )
            }
            Work::FromBuffer { from, offset } => {
                let from = from.at(lane.place)?;
                driver!(
                    table,
                    clEnqueueCopyBufferToImage(
                        queue, from, image, *offset, origin, region, count, events, event
                    )
                )
            }
        })
    }
}

/// The bytes of a buffer that hold a part of an image.
fn bytes(
    image: &Mem,
    buffer: &Mem,
    offset: usize,
    region: Three,
) -> Fallible<std::ops::Range<usize>> {
    let element = image.image.as_ref().map_or(1, |image| image.element);
    let size = region
        .iter()
        .try_fold(element, |all, one| all.checked_mul(*one));
    let end = size.and_then(|size| offset.checked_add(size));
    match end {
        Some(end) if end <= buffer.size && end > offset => Ok(offset..end),
        _ => Err(CL_INVALID_VALUE),
    }
}

/// `clEnqueueReadImage`.
pub unsafe extern "C" fn enqueue_read_image(
    queue: cl_command_queue,
    handle: cl_mem,
    blocking: cl_bool,
    origin: *const usize,
    region: *const usize,
    row: usize,
    slice: usize,
    to: *mut c_void,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    status(|| {
        let queue = Ref::<Queue>::of(queue)?;
        let image = image_of(&queue.context, handle)?;
        // SAFETY: OpenCL's promises about the lists.
        let (origin, region) = unsafe { (three(origin)?, three(region)?) };
        if to.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        let uses = vec![whole(&image, false)];
        let work = Work::Read {
            to: Pointer::new(to),
            row,
            slice,
        };
        let action = ImageCommand {
            image,
            origin,
            region,
            work,
        };
        let kind = CL_COMMAND_READ_IMAGE;
        // SAFETY: OpenCL's promises about the events.
        unsafe {
            let command = Command::new(&queue, kind, (count, events), uses, action)?;
            submit(&queue, command, event, blocking != CL_FALSE)
        }
    })
}

/// `clEnqueueWriteImage`.
pub unsafe extern "C" fn enqueue_write_image(
    queue: cl_command_queue,
    handle: cl_mem,
    blocking: cl_bool,
    origin: *const usize,
    region: *const usize,
    row: usize,
    slice: usize,
    from: *const c_void,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    status(|| {
        let queue = Ref::<Queue>::of(queue)?;
        let image = image_of(&queue.context, handle)?;
        // SAFETY: OpenCL's promises about the lists.
        let (origin, region) = unsafe { (three(origin)?, three(region)?) };
        if from.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        let uses = vec![whole(&image, true)];
        let work = Work::Write {
            from: Pointer::new(from.cast_mut()),
            row,
            slice,
        };
        let action = ImageCommand {
            image,
            origin,
            region,
            work,
        };
        let kind = CL_COMMAND_WRITE_IMAGE;
        // SAFETY: OpenCL's promises about the events.
        unsafe {
            let command = Command::new(&queue, kind, (count, events), uses, action)?;
            submit(&queue, command, event, blocking != CL_FALSE)
        }
    })
}

/// `clEnqueueFillImage`.
pub unsafe extern "C" fn enqueue_fill_image(
    queue: cl_command_queue,
    handle: cl_mem,
    color: *const c_void,
    origin: *const usize,
    region: *const usize,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    status(|| {
        let queue = Ref::<Queue>::of(queue)?;
        let image = image_of(&queue.context, handle)?;
        // SAFETY: OpenCL's promises about the lists.
        let (origin, region) = unsafe { (three(origin)?, three(region)?) };
        if color.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        // SAFETY: OpenCL's promise: a color has four numbers of four bytes.
        let color = unsafe { color.cast::<[u8; 16]>().read_unaligned() };
        let uses = vec![whole(&image, true)];
        let action = ImageCommand {
            image,
            origin,
            region,
            work: Work::Fill { color },
        };
        let kind = CL_COMMAND_FILL_IMAGE;
        // SAFETY: OpenCL's promises about the events.
        unsafe {
            let command = Command::new(&queue, kind, (count, events), uses, action)?;
            submit(&queue, command, event, false)
        }
    })
}

/// `clEnqueueCopyImage`.
pub unsafe extern "C" fn enqueue_copy_image(
    queue: cl_command_queue,
    from: cl_mem,
    to: cl_mem,
    from_origin: *const usize,
    to_origin: *const usize,
    region: *const usize,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    status(|| {
        let queue = Ref::<Queue>::of(queue)?;
        let image = image_of(&queue.context, from)?;
        let to = image_of(&queue.context, to)?;
        // SAFETY: OpenCL's promises about the lists.
        let (origin, at, region) =
            unsafe { (three(from_origin)?, three(to_origin)?, three(region)?) };
        let uses = vec![whole(&image, false), whole(&to, true)];
        let action = ImageCommand {
            image,
            origin,
            region,
            work: Work::Copy { to, at },
        };
        let kind = CL_COMMAND_COPY_IMAGE;
        // SAFETY: OpenCL's promises about the events.
        unsafe {
            let command = Command::new(&queue, kind, (count, events), uses, action)?;
            submit(&queue, command, event, false)
        }
    })
}

/// `clEnqueueCopyImageToBuffer`.
pub unsafe extern "C" fn enqueue_copy_image_to_buffer(
    queue: cl_command_queue,
    from: cl_mem,
    to: cl_mem,
    origin: *const usize,
    region: *const usize,
    offset: usize,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    status(|| {
        let queue = Ref::<Queue>::of(queue)?;
        let image = image_of(&queue.context, from)?;
        let to = buffer_of(&queue, to)?;
        // SAFETY: OpenCL's promises about the lists.
        let (origin, region) = unsafe { (three(origin)?, three(region)?) };
        let range = bytes(&image, &to, offset, region)?;
        let uses = vec![whole(&image, false), Use::write(&to, range)];
        let action = ImageCommand {
            image,
            origin,
            region,
            work: Work::ToBuffer { to, offset },
        };
        let kind = CL_COMMAND_COPY_IMAGE_TO_BUFFER;
        // SAFETY: OpenCL's promises about the events.
        unsafe {
            let command = Command::new(&queue, kind, (count, events), uses, action)?;
            submit(&queue, command, event, false)
        }
    })
}

/// `clEnqueueCopyBufferToImage`.
pub unsafe extern "C" fn enqueue_copy_buffer_to_image(
    queue: cl_command_queue,
    from: cl_mem,
    to: cl_mem,
    offset: usize,
    origin: *const usize,
    region: *const usize,
    count: cl_uint,
    events: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    status(|| {
        let queue = Ref::<Queue>::of(queue)?;
        let from = buffer_of(&queue, from)?;
        let image = image_of(&queue.context, to)?;
        // SAFETY: OpenCL's promises about the lists.
        let (origin, region) = unsafe { (three(origin)?, three(region)?) };
        let range = bytes(&image, &from, offset, region)?;
        let uses = vec![Use::read(&from, range), whole(&image, true)];
        let work = Work::FromBuffer { from, offset };
        let action = ImageCommand {
            image,
            origin,
            region,
            work,
        };
        let kind = CL_COMMAND_COPY_BUFFER_TO_IMAGE;
        // SAFETY: OpenCL's promises about the events.
        unsafe {
            let command = Command::new(&queue, kind, (count, events), uses, action)?;
            submit(&queue, command, event, false)
        }
    })
}

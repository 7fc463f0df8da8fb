//! Functions that read, write, copy and fill images.

use std::ops::Range;

use libc::c_void;
use opencl_sys::*;

use super::transfer::{Three, three};
use crate::call::enqueue as give;
use crate::command::{Pointer, Use, Work};
use crate::handle::Ref;
use crate::mem::Mem;
use crate::queue::Queue;
use crate::status::Fallible;
use crate::submit::{Asked, enqueue};
use crate::transfer::buffer_of;

/// A part of an image.
pub struct Part {
    pub image: Ref<Mem>,
    pub origin: Three,
    pub region: Three,
}

impl Part {
    /// # Safety
    /// Both lists are null or have three numbers.
    pub unsafe fn new(
        queue: &Queue,
        image: cl_mem,
        origin: *const usize,
        region: *const usize,
    ) -> Fallible<Self> {
        let image = Mem::of(&queue.context, image, |mem| mem.image.is_some())?;
        // SAFETY: promised by the caller.
        let (origin, region) = unsafe { (three(origin)?, three(region)?) };
        Ok(Self {
            image,
            origin,
            region,
        })
    }

    /// The bytes of a buffer that hold it.
    fn bytes(&self, buffer: &Mem, offset: usize) -> Fallible<Range<usize>> {
        let element = self.image.image.as_ref().map_or(1, |image| image.element);
        let mut region = self.region.iter();
        let size = region.try_fold(element, |all, one| all.checked_mul(*one));
        let end = size.and_then(|size| offset.checked_add(size));
        match end {
            Some(end) if end <= buffer.size && end > offset => Ok(offset..end),
            _ => Err(CL_INVALID_VALUE),
        }
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
    let asked = Asked::new(CL_COMMAND_READ_IMAGE, count, events, event).blocking(blocking);
    let work = |queue: &Ref<Queue>| {
        // SAFETY: OpenCL's promises about the lists.
        let part = unsafe { Part::new(queue, handle, origin, region)? };
        let to = Pointer::new(to)?;
        Work::new([Use::whole(&part.image, false)], move |call, mem| {
            let (image, to, wait) = (mem(0)?, to.address(), call.blocking);
            let (at, region) = (part.origin.as_ptr(), part.region.as_ptr());
            give!(
                call,
                clEnqueueReadImage(image, wait, at, region, row, slice, to)
            )
        })
    };
    // SAFETY: OpenCL's promises about the events.
    unsafe { enqueue(queue, asked, work) }
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
    let asked = Asked::new(CL_COMMAND_WRITE_IMAGE, count, events, event).blocking(blocking);
    let work = |queue: &Ref<Queue>| {
        // SAFETY: OpenCL's promises about the lists.
        let part = unsafe { Part::new(queue, handle, origin, region)? };
        let from = Pointer::new(from)?;
        Work::new([Use::whole(&part.image, true)], move |call, mem| {
            let (image, from, wait) = (mem(0)?, from.address(), call.blocking);
            let (at, region) = (part.origin.as_ptr(), part.region.as_ptr());
            give!(
                call,
                clEnqueueWriteImage(image, wait, at, region, row, slice, from)
            )
        })
    };
    // SAFETY: OpenCL's promises about the events.
    unsafe { enqueue(queue, asked, work) }
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
    let asked = Asked::new(CL_COMMAND_FILL_IMAGE, count, events, event);
    let work = |queue: &Ref<Queue>| {
        // SAFETY: OpenCL's promises about the lists.
        let part = unsafe { Part::new(queue, handle, origin, region)? };
        if color.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        // SAFETY: OpenCL's promise: a color has four numbers of four bytes.
        let color = unsafe { color.cast::<[u8; 16]>().read_unaligned() };
        Work::new([Use::whole(&part.image, true)], move |call, mem| {
            let (image, color) = (mem(0)?, color.as_ptr().cast());
            let (at, region) = (part.origin.as_ptr(), part.region.as_ptr());
            give!(call, clEnqueueFillImage(image, color, at, region))
        })
    };
    // SAFETY: OpenCL's promises about the events.
    unsafe { enqueue(queue, asked, work) }
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
    let asked = Asked::new(CL_COMMAND_COPY_IMAGE, count, events, event);
    let work = |queue: &Ref<Queue>| {
        // SAFETY: OpenCL's promises about the lists.
        let (from, to) = unsafe {
            (
                Part::new(queue, from, from_origin, region)?,
                Part::new(queue, to, to_origin, region)?,
            )
        };
        let uses = [Use::whole(&from.image, false), Use::whole(&to.image, true)];
        Work::new(uses, move |call, mem| {
            let (image, target, region) = (mem(0)?, mem(1)?, from.region.as_ptr());
            let (at, there) = (from.origin.as_ptr(), to.origin.as_ptr());
            give!(call, clEnqueueCopyImage(image, target, at, there, region))
        })
    };
    // SAFETY: OpenCL's promises about the events.
    unsafe { enqueue(queue, asked, work) }
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
    let asked = Asked::new(CL_COMMAND_COPY_IMAGE_TO_BUFFER, count, events, event);
    let work = |queue: &Ref<Queue>| {
        // SAFETY: OpenCL's promises about the lists.
        let part = unsafe { Part::new(queue, from, origin, region)? };
        let to = buffer_of(queue, to)?;
        let written = Use::write(&to, part.bytes(&to, offset)?);
        let uses = [Use::whole(&part.image, false), written];
        Work::new(uses, move |call, mem| {
            let (image, to) = (mem(0)?, mem(1)?);
            let (at, region) = (part.origin.as_ptr(), part.region.as_ptr());
            give!(
                call,
                clEnqueueCopyImageToBuffer(image, to, at, region, offset)
            )
        })
    };
    // SAFETY: OpenCL's promises about the events.
    unsafe { enqueue(queue, asked, work) }
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
    let asked = Asked::new(CL_COMMAND_COPY_BUFFER_TO_IMAGE, count, events, event);
    let work = |queue: &Ref<Queue>| {
        let from = buffer_of(queue, from)?;
        // SAFETY: OpenCL's promises about the lists.
        let part = unsafe { Part::new(queue, to, origin, region)? };
        let read = Use::read(&from, part.bytes(&from, offset)?);
        let uses = [read, Use::whole(&part.image, true)];
        Work::new(uses, move |call, mem| {
            let (from, image) = (mem(0)?, mem(1)?);
            let (at, region) = (part.origin.as_ptr(), part.region.as_ptr());
            give!(
                call,
                clEnqueueCopyBufferToImage(from, image, offset, at, region)
            )
        })
    };
    // SAFETY: OpenCL's promises about the events.
    unsafe { enqueue(queue, asked, work) }
}

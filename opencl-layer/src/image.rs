//! Images, and the functions that read, write, copy and fill them. An image lives at one place of its context; `Command::fixed_place` sends whatever
//! uses it there. The driver of that place checks formats and sizes.

use std::ops::Range;

use libc::c_void;
use opencl_sys::*;

use crate::answer::{Answer, Answers};
use crate::boundary::{object, status};
use crate::call::enqueue as give;
use crate::command::{Pointer, Use, Work};
use crate::context::Context;
use crate::domain::Own;
use crate::drivers::number;
use crate::handle::Ref;
use crate::mem::{Image, Mem, check_flags, with_access};
use crate::queue::Queue;
use crate::status::{Fallible, asking, check, driver, driver_object};
use crate::submit::{Asked, enqueue};
use crate::transfer::buffer_of;
use crate::transfer::{Three, three};

/// # Safety
/// As OpenCL promises about the pointers.
unsafe fn create(
    context: cl_context,
    flags: cl_mem_flags,
    format: *const cl_image_format,
    description: *const cl_image_desc,
    host: *mut c_void,
) -> Fallible<cl_mem> {
    let context = Ref::<Context>::of(context)?;
    if format.is_null() {
        return Err(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
    }
    if description.is_null() {
        return Err(CL_INVALID_IMAGE_DESCRIPTOR);
    }
    // SAFETY: promised by the caller.
    let mut description = unsafe { *description };
    let buffer = match description.buffer.is_null() {
        true => None,
        false => Some(Ref::<Mem>::of(description.buffer).map_err(|_| CL_INVALID_IMAGE_DESCRIPTOR)?),
    };
    check_flags(flags, std::ptr::null_mut()).or_else(|code| match code {
        // A row pitch may come with host memory; the driver checks both.
        CL_INVALID_HOST_PTR => Ok(()),
        code => Err(code),
    })?;
    let only_place = context.image_place().ok_or(CL_INVALID_OPERATION)?;
    if let Some(buffer) = &buffer {
        if buffer.context != context || buffer.kind != CL_MEM_OBJECT_BUFFER {
            return Err(CL_INVALID_IMAGE_DESCRIPTOR);
        }
        description.buffer = buffer.at(only_place)?;
    }
    let domain = context.domain(only_place);
    let (table, inner) = (domain.table, domain.context);
    let native = driver_object!(
        table,
        clCreateImage(inner, flags, format, &raw const description, host)
    )?;
    let own = Own::new(native, table.clReleaseMemObject);
    let size = number(asking!(table, clGetMemObjectInfo(native, CL_MEM_SIZE)))?;
    let element = number(asking!(
        table,
        clGetImageInfo(native, CL_IMAGE_ELEMENT_SIZE)
    ))?;
    let flags = match &buffer {
        Some(buffer) => buffer.inherited(flags),
        None => with_access(flags),
    };
    let (what, image) = ((description.image_type, flags), Image { element });
    let image = (image, only_place, own);
    let mem = Mem::image(context, what, size, host, image, buffer);
    Ok(Ref::new(mem).give())
}

/// `clCreateImage`.
pub unsafe extern "C" fn create_image(
    context: cl_context,
    flags: cl_mem_flags,
    format: *const cl_image_format,
    description: *const cl_image_desc,
    host: *mut c_void,
    code: *mut cl_int,
) -> cl_mem {
    // SAFETY: OpenCL's promises about the pointers.
    unsafe { object(code, || create(context, flags, format, description, host)) }
}

/// A description of an image of `[width, height, depth]` elements.
fn describe(kind: cl_mem_object_type, size: [usize; 3], row: usize, slice: usize) -> cl_image_desc {
    cl_image_desc {
        image_type: kind,
        image_width: size[0],
        image_height: size[1],
        image_depth: size[2],
        image_array_size: 0,
        image_row_pitch: row,
        image_slice_pitch: slice,
        num_mip_levels: 0,
        num_samples: 0,
        buffer: std::ptr::null_mut(),
    }
}

/// The older functions have no descriptor that could be invalid, only sizes.
fn as_size(code: cl_int) -> cl_int {
    match code {
        CL_INVALID_IMAGE_DESCRIPTOR => CL_INVALID_IMAGE_SIZE,
        code => code,
    }
}

/// `clCreateImage2D`.
pub unsafe extern "C" fn create_image_2d(
    context: cl_context,
    flags: cl_mem_flags,
    format: *const cl_image_format,
    width: usize,
    height: usize,
    row: usize,
    host: *mut c_void,
    code: *mut cl_int,
) -> cl_mem {
    let description = describe(CL_MEM_OBJECT_IMAGE2D, [width, height, 0], row, 0);
    // SAFETY: OpenCL's promises about the pointers.
    unsafe {
        object(code, || {
            create(context, flags, format, &raw const description, host).map_err(as_size)
        })
    }
}

/// `clCreateImage3D`.
pub unsafe extern "C" fn create_image_3d(
    context: cl_context,
    flags: cl_mem_flags,
    format: *const cl_image_format,
    width: usize,
    height: usize,
    depth: usize,
    row: usize,
    slice: usize,
    host: *mut c_void,
    code: *mut cl_int,
) -> cl_mem {
    let description = describe(CL_MEM_OBJECT_IMAGE3D, [width, height, depth], row, slice);
    // SAFETY: OpenCL's promises about the pointers.
    unsafe {
        object(code, || {
            if depth <= 1 {
                Ref::<Context>::of(context)?;
                return Err(CL_INVALID_IMAGE_SIZE);
            }
            create(context, flags, format, &raw const description, host).map_err(as_size)
        })
    }
}

/// `clGetSupportedImageFormats`: those of the place where images live.
pub unsafe extern "C" fn get_supported_image_formats(
    context: cl_context,
    flags: cl_mem_flags,
    kind: cl_mem_object_type,
    entries: cl_uint,
    formats: *mut cl_image_format,
    count: *mut cl_uint,
) -> cl_int {
    status(|| {
        let context = Ref::<Context>::of(context)?;
        let images = CL_MEM_OBJECT_IMAGE2D..=CL_MEM_OBJECT_IMAGE1D_BUFFER;
        if !images.contains(&kind) || (entries == 0 && !formats.is_null()) {
            return Err(CL_INVALID_VALUE);
        }
        let Some(only_place) = context.image_place() else {
            if !count.is_null() {
                // SAFETY: OpenCL's promise about the count.
                unsafe { *count = 0 };
            }
            return Ok(());
        };
        let domain = context.domain(only_place);
        check(driver!(
            domain.table,
            clGetSupportedImageFormats(domain.context, flags, kind, entries, formats, count)
        ))
    })
}

/// Questions about images.
pub struct Images;

/// `clGetImageInfo`.
impl Answers<Images> for Mem {
    fn answer(mem: &Ref<Self>, what: cl_uint, answer: Answer) -> Fallible<()> {
        let only_place = mem.only_place.ok_or(CL_INVALID_MEM_OBJECT)?;
        if what == CL_IMAGE_BUFFER {
            return answer.handle(mem.parent.as_ref().map(|(buffer, _)| buffer));
        }
        let (table, native) = (mem.context.domain(only_place).table, mem.at(only_place)?);
        answer.pass(asking!(table, clGetImageInfo(native, what)))
    }
}

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

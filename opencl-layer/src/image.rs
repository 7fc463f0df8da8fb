//! Images. An image lives at one place of its context; `Command::fixed_place` sends whatever
//! uses it there. The driver of that place checks formats and sizes.

use libc::c_void;
use opencl_sys::*;

use crate::answer::{Answer, Answers};
use crate::boundary::{object, status};
use crate::context::Context;
use crate::domain::Own;
use crate::drivers::number;
use crate::handle::Ref;
use crate::mem::{Image, Mem, check_flags, with_access};
use crate::status::{Fallible, asking, check, driver, driver_object};

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

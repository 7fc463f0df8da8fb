//! The functions of later versions that make objects from lists of properties. What
//! OpenCL 1.2 has is made; other properties are errors.

use libc::c_void;
use opencl_sys::*;

use crate::boundary::object;
use crate::handle::pairs;
use crate::status::Fallible;
use crate::{image, mem, queue, sampler};

/// `clCreateCommandQueueWithProperties`.
pub unsafe extern "C" fn create_command_queue_with_properties(
    context: cl_context,
    device: cl_device_id,
    list: *const cl_queue_properties,
    code: *mut cl_int,
) -> cl_command_queue {
    let make = || {
        // SAFETY: OpenCL's promise about the list.
        let pairs = unsafe { pairs(list) };
        let mut bits: cl_command_queue_properties = 0;
        for (key, value) in pairs {
            match key {
                key if key == cl_queue_properties::from(CL_QUEUE_PROPERTIES) => bits = value,
                key if key == cl_queue_properties::from(CL_QUEUE_SIZE) => {
                    return Err(CL_INVALID_QUEUE_PROPERTIES);
                }
                _ => return Err(CL_INVALID_VALUE),
            }
        }
        let device_queue = CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT;
        if bits & device_queue != 0 {
            return Err(CL_INVALID_QUEUE_PROPERTIES);
        }
        queue::calls::create(context, device, bits)
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}

/// `clCreateSamplerWithProperties`.
pub unsafe extern "C" fn create_sampler_with_properties(
    context: cl_context,
    list: *const cl_sampler_properties,
    code: *mut cl_int,
) -> cl_sampler {
    let make = || {
        // SAFETY: OpenCL's promise about the list.
        let pairs = unsafe { pairs(list) };
        let (mut normalized, mut addressing) = (CL_TRUE, CL_ADDRESS_CLAMP);
        let mut filter = CL_FILTER_NEAREST;
        for (index, (key, value)) in pairs.iter().enumerate() {
            if pairs[..index].iter().any(|(other, _)| other == key) {
                return Err(CL_INVALID_VALUE);
            }
            match *key as cl_sampler_info {
                CL_SAMPLER_NORMALIZED_COORDS => normalized = *value as cl_bool,
                CL_SAMPLER_ADDRESSING_MODE => addressing = *value as cl_addressing_mode,
                CL_SAMPLER_FILTER_MODE => filter = *value as cl_filter_mode,
                _ => return Err(CL_INVALID_VALUE),
            }
        }
        sampler::create(context, normalized, addressing, filter)
    };
    // SAFETY: OpenCL's promise about the code.
    unsafe { object(code, make) }
}

/// Memory objects have no properties yet.
///
/// # Safety
/// `list` is null or ends in 0.
unsafe fn none(list: *const cl_mem_properties) -> Fallible<()> {
    // SAFETY: promised by the caller.
    match unsafe { pairs(list) }.is_empty() {
        true => Ok(()),
        false => Err(CL_INVALID_PROPERTY),
    }
}

/// `clCreateBufferWithProperties`.
pub unsafe extern "C" fn create_buffer_with_properties(
    context: cl_context,
    list: *const cl_mem_properties,
    flags: cl_mem_flags,
    size: usize,
    host: *mut c_void,
    code: *mut cl_int,
) -> cl_mem {
    // SAFETY: OpenCL's promises about the list, the host pointer and the code.
    unsafe {
        match none(list) {
            Ok(()) => mem::calls::create_buffer(context, flags, size, host, code),
            Err(error) => object(code, || Err(error)),
        }
    }
}

/// `clCreateImageWithProperties`.
pub unsafe extern "C" fn create_image_with_properties(
    context: cl_context,
    list: *const cl_mem_properties,
    flags: cl_mem_flags,
    format: *const cl_image_format,
    description: *const cl_image_desc,
    host: *mut c_void,
    code: *mut cl_int,
) -> cl_mem {
    // SAFETY: OpenCL's promises about all pointers.
    unsafe {
        match none(list) {
            Ok(()) => image::create_image(context, flags, format, description, host, code),
            Err(error) => object(code, || Err(error)),
        }
    }
}

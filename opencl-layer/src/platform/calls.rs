//! The functions of the platform.

use std::ptr;

use opencl_sys::*;

use super::{of, of_type, platform};
use crate::answer;
use crate::answer::Answer;
use crate::boundary::status;
use crate::handle::Ref;

/// `clGetPlatformIDs`.
pub unsafe extern "C" fn get_platform_ids(
    entries: cl_uint,
    platforms: *mut cl_platform_id,
    count: *mut cl_uint,
) -> cl_int {
    status(|| {
        if (entries == 0 && !platforms.is_null()) || (platforms.is_null() && count.is_null()) {
            return Err(CL_INVALID_VALUE);
        }
        let platform = platform();
        // SAFETY: OpenCL's promises about both pointers.
        unsafe { write_list(&[platform.handle()], entries, platforms, count) };
        Ok(())
    })
}

/// Writes at most `entries` handles, and how many there are.
///
/// # Safety
/// `list` is null or has room for `entries` handles; `count` is null or valid.
pub unsafe fn write_list(
    handles: &[*mut libc::c_void],
    entries: cl_uint,
    list: *mut *mut libc::c_void,
    count: *mut cl_uint,
) {
    if !list.is_null() {
        let fits = handles.len().min(entries as usize);
        // SAFETY: the caller promises room for `entries` handles.
        unsafe { ptr::copy_nonoverlapping(handles.as_ptr(), list, fits) };
    }
    if !count.is_null() {
        // SAFETY: the caller promises it.
        unsafe { *count = handles.len() as cl_uint };
    }
}

/// The extensions of the platform.
const EXTENSIONS: &str = "cl_khr_icd";

/// `clGetPlatformInfo`.
pub unsafe extern "C" fn get_platform_info(
    handle: cl_platform_id,
    what: cl_platform_info,
    size: usize,
    value: *mut libc::c_void,
    needed: *mut usize,
) -> cl_int {
    status(|| {
        of(handle)?;
        // SAFETY: OpenCL's promises about both pointers.
        let answer = unsafe { Answer::to(size, value, needed) };
        match what {
            CL_PLATFORM_NUMERIC_VERSION => return answer::ours(answer),
            CL_PLATFORM_EXTENSIONS_WITH_VERSION => {
                return answer::extensions(answer, EXTENSIONS);
            }
            // No host clock is compared with devices'.
            CL_PLATFORM_HOST_TIMER_RESOLUTION => return answer.value::<cl_ulong>(0),
            _ => {}
        }
        answer.text(match what {
            CL_PLATFORM_PROFILE => "FULL_PROFILE",
            CL_PLATFORM_VERSION => concat!("OpenCL 1.2 pdawl ", env!("CARGO_PKG_VERSION")),
            CL_PLATFORM_NAME | CL_PLATFORM_VENDOR => "pdawl",
            CL_PLATFORM_EXTENSIONS => EXTENSIONS,
            CL_PLATFORM_ICD_SUFFIX_KHR => "PDAWL",
            _ => return Err(CL_INVALID_VALUE),
        })
    })
}

/// `clGetDeviceIDs`.
pub unsafe extern "C" fn get_device_ids(
    handle: cl_platform_id,
    kind: cl_device_type,
    entries: cl_uint,
    devices: *mut cl_device_id,
    count: *mut cl_uint,
) -> cl_int {
    status(|| {
        let platform = of(handle)?;
        if (entries == 0 && !devices.is_null()) || (devices.is_null() && count.is_null()) {
            return Err(CL_INVALID_VALUE);
        }
        let handles: Vec<_> = of_type(&platform, kind)?.iter().map(Ref::handle).collect();
        if handles.is_empty() {
            return Err(CL_DEVICE_NOT_FOUND);
        }
        // SAFETY: OpenCL's promises about both pointers.
        unsafe { write_list(&handles, entries, devices, count) };
        Ok(())
    })
}

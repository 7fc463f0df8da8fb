//! Functions that programs and loaders ask for by name.

use std::ffi::CStr;
use std::ptr;

use libc::{c_char, c_void};
use opencl_sys::cl_platform_id;

use crate::platform::{self, calls::get_platform_ids};
use crate::scheduling::calls::{set_command_queue_sched_property, set_kernel_work_group_info};

/// `clGetExtensionFunctionAddress`. Within the library the exported name would be that of
/// the loader, which has one, too.
pub unsafe extern "C" fn get_extension_function_address(name: *const c_char) -> *mut c_void {
    if name.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: OpenCL's promise about the name.
    match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"clSetCommandQueueSchedPropertyPDAWL" => set_command_queue_sched_property as *mut c_void,
        b"clSetKernelWorkGroupInfoPDAWL" => set_kernel_work_group_info as *mut c_void,
        b"clIcdGetPlatformIDsKHR" => get_platform_ids as *mut c_void,
        _ => ptr::null_mut(),
    }
}

/// `clGetExtensionFunctionAddressForPlatform`.
pub unsafe extern "C" fn get_extension_function_address_for_platform(
    handle: cl_platform_id,
    name: *const c_char,
) -> *mut c_void {
    if platform::of(handle).is_err() {
        return ptr::null_mut();
    }
    // SAFETY: the same promise.
    unsafe { get_extension_function_address(name) }
}

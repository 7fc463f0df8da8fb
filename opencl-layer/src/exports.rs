//! What loaders and programs find by name in this library. Everything begins here or in
//! `layer`.

use libc::{c_char, c_void};
use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::{cl_int, cl_platform_id, cl_platform_info, cl_uint};

use crate::extension::get_extension_function_address;
use crate::platform::calls::{get_platform_ids, get_platform_info};
use crate::table;

/// The table, which everything begins with.
pub fn install() -> &'static cl_icd_dispatch {
    table::install(clIcdGetPlatformIDsKHR)
}

/// Called by loaders.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clIcdGetPlatformIDsKHR(
    entries: cl_uint,
    platforms: *mut cl_platform_id,
    count: *mut cl_uint,
) -> cl_int {
    install();
    // SAFETY: the same promises.
    unsafe { get_platform_ids(entries, platforms, count) }
}

/// Called by loaders.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clGetExtensionFunctionAddress(name: *const c_char) -> *mut c_void {
    install();
    // SAFETY: the same promise.
    unsafe { get_extension_function_address(name) }
}

/// Exported for ocl-icd, which asks for it before the table is known.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clGetPlatformInfo(
    handle: cl_platform_id,
    what: cl_platform_info,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> cl_int {
    install();
    // SAFETY: the same promises.
    unsafe { get_platform_info(handle, what, size, value, needed) }
}

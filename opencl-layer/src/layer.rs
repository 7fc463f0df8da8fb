//! The layer: what a loader calls to put this library before every program.
//!
//! A loader dispatches most functions through the object that they are called for, and
//! our objects bring our table. The functions below have no object of ours, or the
//! loader compares what they are given with its own list of platforms.

use std::sync::OnceLock;

use libc::{c_char, c_void};
use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::cl_layer::{
    CL_LAYER_API_VERSION, CL_LAYER_API_VERSION_100, CL_LAYER_NAME, cl_layer_info,
    cl_layer_properties,
};
use opencl_sys::{CL_INVALID_VALUE, CL_SUCCESS, cl_int, cl_platform_id, cl_platform_info, cl_uint};

use crate::answer::Answer;
use crate::boundary::status;
use crate::extension::get_extension_function_address;
use crate::platform::calls::{get_platform_ids, get_platform_info};
use crate::table;

struct Table(cl_icd_dispatch);

// SAFETY: functions only.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

/// Called by loaders for the layer's name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clGetLayerInfo(
    what: cl_layer_info,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> cl_int {
    status(|| {
        // SAFETY: the loader's promises about both pointers.
        let answer = unsafe { Answer::to(size, value, needed) };
        match what {
            CL_LAYER_API_VERSION => answer.value(CL_LAYER_API_VERSION_100),
            CL_LAYER_NAME => answer.text("pdawl"),
            _ => Err(CL_INVALID_VALUE),
        }
    })
}

/// Called by loaders: gives them the table that calls go through.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clInitLayer(
    entries: cl_uint,
    target: *const cl_icd_dispatch,
    entries_ret: *mut cl_uint,
    layer: *mut *const cl_icd_dispatch,
) -> cl_int {
    static LAYER: OnceLock<Table> = OnceLock::new();
    status(|| {
        if target.is_null() || entries_ret.is_null() || layer.is_null() {
            return Err(CL_INVALID_VALUE);
        }
        let known = size_of::<cl_icd_dispatch>() / size_of::<usize>();
        let table = LAYER.get_or_init(|| {
            let mut all = *install();
            // What the loader has more than we, or less, is its own matter.
            let count = known.min(entries as usize);
            // SAFETY: both tables have so many entries, all of a pointer's size.
            unsafe {
                let to = (&raw mut all).cast::<usize>();
                std::ptr::copy_nonoverlapping(target.cast::<usize>(), to, count);
            }
            table::override_first(&mut all);
            Table(all)
        });
        // SAFETY: the loader's promises about both pointers.
        unsafe {
            *entries_ret = known.min(entries as usize) as cl_uint;
            *layer = &raw const table.0;
        }
        Ok(())
    })
}

/// As [`clInitLayer`], for newer loaders.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clInitLayerWithProperties(
    entries: cl_uint,
    target: *const cl_icd_dispatch,
    entries_ret: *mut cl_uint,
    layer: *mut *const cl_icd_dispatch,
    _properties: *const cl_layer_properties,
) -> cl_int {
    // SAFETY: the same promises.
    unsafe { clInitLayer(entries, target, entries_ret, layer) }
}

/// Called by newer loaders at the process's end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clDeinitLayer() -> cl_int {
    CL_SUCCESS
}

// What loaders and programs find by name in this library. Everything begins here or in
// `layer`.

/// The table, which everything begins with.
fn install() -> &'static cl_icd_dispatch {
    table::install(clIcdGetPlatformIDsKHR)
}

/// Called by loaders.
#[unsafe(no_mangle)]
unsafe extern "C" fn clIcdGetPlatformIDsKHR(
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
unsafe extern "C" fn clGetExtensionFunctionAddress(name: *const c_char) -> *mut c_void {
    install();
    // SAFETY: the same promise.
    unsafe { get_extension_function_address(name) }
}

/// Exported for ocl-icd, which asks for it before the table is known.
#[unsafe(no_mangle)]
unsafe extern "C" fn clGetPlatformInfo(
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

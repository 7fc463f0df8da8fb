//! What objects and drivers' libraries are told of the table of all functions, which is above
//! everything that it has.

use std::ptr;
use std::sync::OnceLock;

use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::{cl_int, cl_platform_id, cl_uint};

/// The type of `clIcdGetPlatformIDsKHR`.
pub type GetPlatforms = unsafe extern "C" fn(cl_uint, *mut cl_platform_id, *mut cl_uint) -> cl_int;

/// What this library shows of itself.
pub struct Dispatch {
    pub table: cl_icd_dispatch,
    /// The exported function, by which this library knows itself among drivers.
    pub get_platforms: GetPlatforms,
}

// SAFETY: functions only.
unsafe impl Send for Dispatch {}
// SAFETY: as above.
unsafe impl Sync for Dispatch {}

static DISPATCH: OnceLock<Dispatch> = OnceLock::new();

/// Makes the table known. Every exported function does so before anything else, as the first
/// object has its address.
pub fn install(make: impl FnOnce() -> Dispatch) -> &'static Dispatch {
    DISPATCH.get_or_init(make)
}

/// What every object of ours begins with.
pub fn table() -> *const cl_icd_dispatch {
    DISPATCH.get().map_or(ptr::null(), |it| &raw const it.table)
}

/// The exported function of this library.
pub fn get_platforms() -> Option<GetPlatforms> {
    DISPATCH.get().map(|it| it.get_platforms)
}

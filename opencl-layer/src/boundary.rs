//! The C boundary.
//!
//! Inside, every function returns a [`Fallible`]. [`status`] and [`object`] turn it into
//! what OpenCL's functions return, and keep panics from crossing into C.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use libc::c_void;
use opencl_sys::{CL_OUT_OF_HOST_MEMORY, CL_SUCCESS, cl_int};

use crate::process_end;
use crate::status::Fallible;

/// Runs the body of a function that returns a status code.
pub fn status(body: impl FnOnce() -> Fallible<()>) -> cl_int {
    process_end::watch();
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => CL_SUCCESS,
        Ok(Err(code)) => code,
        Err(_) => CL_OUT_OF_HOST_MEMORY,
    }
}

/// Runs the body of a function that returns a pointer and writes a status code, if the
/// caller wants one.
///
/// # Safety
/// `code` is null or valid for a write.
pub unsafe fn object(
    code: *mut cl_int,
    body: impl FnOnce() -> Fallible<*mut c_void>,
) -> *mut c_void {
    let mut made = ptr::null_mut();
    let result = status(|| {
        made = body()?;
        Ok(())
    });
    if !code.is_null() {
        // SAFETY: the caller promises a valid pointer.
        unsafe { *code = result };
    }
    if result == CL_SUCCESS {
        made
    } else {
        ptr::null_mut()
    }
}

//! Status codes at the C boundary.
//!
//! Inside, every function returns a [`Fallible`]. [`status`] and [`object`] turn it into
//! what OpenCL's functions return, and keep panics from crossing into C.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use libc::c_void;
use opencl_sys::{CL_OUT_OF_HOST_MEMORY, CL_SUCCESS, cl_int};

use crate::process_end;

/// A result whose error is an OpenCL status code.
pub type Fallible<T> = Result<T, cl_int>;

/// Turns a driver's status code into a result.
pub fn check(code: cl_int) -> Fallible<()> {
    if code == CL_SUCCESS {
        Ok(())
    } else {
        Err(code)
    }
}

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

/// Calls a function of a driver's table; a missing one is an invalid operation.
macro_rules! driver {
    ($table:expr, $name:ident($($argument:expr),* $(,)?)) => {
        match $table.$name {
            // SAFETY: the handles are alive and of this driver, and pointers are valid
            // for the time of the call; each caller sees to that.
            Some(function) => unsafe { function($($argument),*) },
            None => opencl_sys::CL_INVALID_OPERATION,
        }
    };
}

/// Calls a function of a driver's table that makes an object, and returns the object or
/// the status code.
macro_rules! driver_object {
    ($table:expr, $name:ident($($argument:expr),* $(,)?)) => {{
        let mut code: opencl_sys::cl_int = opencl_sys::CL_SUCCESS;
        match $table.$name {
            Some(function) => {
                // SAFETY: as for `driver!`; `code` is written during the call.
                let made = unsafe { function($($argument,)* &mut code) };
                if code == opencl_sys::CL_SUCCESS && !made.is_null() {
                    Ok(made)
                } else if code == opencl_sys::CL_SUCCESS {
                    Err(opencl_sys::CL_OUT_OF_RESOURCES)
                } else {
                    Err(code)
                }
            }
            None => Err(opencl_sys::CL_INVALID_OPERATION),
        }
    }};
}

pub(crate) use {driver, driver_object};

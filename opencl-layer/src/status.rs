//! Results whose errors are status codes, and calls of drivers.

use opencl_sys::{CL_SUCCESS, cl_int};

/// A result whose error is an OpenCL status code.
pub type Fallible<T> = Result<T, cl_int>;

/// Turns a driver's status code into a result.
pub fn check(code: cl_int) -> Fallible<()> {
    match code {
        CL_SUCCESS => Ok(()),
        code => Err(code),
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
                match code {
                    opencl_sys::CL_SUCCESS if made.is_null() => {
                        Err(opencl_sys::CL_OUT_OF_RESOURCES)
                    }
                    opencl_sys::CL_SUCCESS => Ok(made),
                    code => Err(code),
                }
            }
            None => Err(opencl_sys::CL_INVALID_OPERATION),
        }
    }};
}

/// A question to a driver, whose function takes the size and the address of the answer and where
/// the size of all of it goes after the arguments.
macro_rules! asking {
    ($table:expr, $name:ident($($argument:expr),* $(,)?)) => {
        move |size, value, needed| {
            $crate::status::driver!($table, $name($($argument,)* size, value, needed))
        }
    };
}

pub(crate) use {asking, driver, driver_object};

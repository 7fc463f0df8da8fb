//! MPI's return codes as errors.

use std::ffi::{CStr, c_char, c_int};
use std::fmt;

use mpi::ffi;

/// Why a call failed, with the remedy where one is known.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    /// A failure of pdawl's own.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A rank with which MPI cannot communicate.
pub struct Unreachable {
    pub rank: usize,
    pub why: Failure,
}

/// The result of the MPI function of this name.
pub fn check(function: &str, code: c_int) -> Result<(), Failure> {
    match code == ffi::MPI_SUCCESS as c_int {
        true => Ok(()),
        false => Err(Failure(format!("{function}: {}", text(code)))),
    }
}

/// What MPI says about a code.
fn text(code: c_int) -> String {
    // One byte more than MPI writes, which remains 0.
    let mut text = [0 as c_char; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let mut length = 0;
    // SAFETY: the text has room for the longest one.
    let found = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr(), &raw mut length) };
    match found == ffi::MPI_SUCCESS as c_int {
        // SAFETY: the text ends with a 0.
        true => unsafe { CStr::from_ptr(text.as_ptr()) }
            .to_string_lossy()
            .into_owned(),
        false => format!("error {code}"),
    }
}

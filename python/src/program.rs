//! The program `pdawl`, in a process of Python's.

use std::ffi::OsString;
use std::panic::catch_unwind;
use std::path::PathBuf;

use pyo3::prelude::*;

/// Says where this module is, and with which words the program is started.
#[pyfunction]
pub fn loaded(start: Vec<OsString>, file: PathBuf) {
    pdawl_cli::Loaded { start, file }.set();
}

/// Runs the program with arguments, of which the first is its name. Returns its exit status.
#[pyfunction]
pub fn program(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    /// Of a Rust program that panics; the message has been printed.
    const PANICKED: u8 = 101;
    py.detach(|| catch_unwind(|| pdawl_cli::run(arguments)).unwrap_or(PANICKED))
}

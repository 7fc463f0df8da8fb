//! What is wrong with an NPY file.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a file cannot be read as a matrix.
#[derive(Debug, Error)]
pub enum NpyError {
    #[error("{}: cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },

    #[error(
        "{}: is not an NPY file: {why}; write one with numpy.save(\"FILE.npy\", matrix)",
        path.display()
    )]
    Header { path: PathBuf, why: String },

    #[error(
        "{}: has numbers of type {found}, and {needed} are needed; {remedy}",
        path.display()
    )]
    Type {
        path: PathBuf,
        found: String,
        needed: &'static str,
        /// How they are converted, and what that loses.
        remedy: String,
    },

    #[error(
        "{}: has an array of {} dimensions, shape {found:?}, and {needed}",
        path.display(),
        found.len()
    )]
    Dimensions {
        path: PathBuf,
        found: Vec<u64>,
        needed: &'static str,
    },

    #[error(
        "{}: is truncated: its header says {} x {} numbers of type {type_name}, and {has} bytes \
         follow; write it again",
        path.display(),
        shape.0,
        shape.1
    )]
    Length {
        path: PathBuf,
        shape: (u64, u64),
        type_name: &'static str,
        /// Bytes after the header.
        has: u64,
    },
}

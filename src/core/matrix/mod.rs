//! Sparse matrices in memory, and where they come from; dense ones in files. A matrix
//! knows no workload and no device.
//!
//! * [`csr`] is a matrix in memory, in compressed sparse rows, checked once. Its arrays are
//!   its own, or [`Shared`] ones of somebody else's.
//! * [`source`] names a source of matrices: [`market`] reads and writes Matrix Market
//!   files, `cache` keeps binary copies beside them, and [`generate`] makes matrices.
//! * [`stats`] has the statistics of a matrix.
//! * [`npy`] reads dense matrices from NPY files, tile by tile, and writes them.
//! * `assemble` sorts entries into rows, `rows` divides a matrix's arrays among
//!   threads and runs these,
//!   `checksum` detects changed files, and [`control`] is progress and interruption.

mod assemble;
mod cache;
mod checksum;
pub mod control;
pub mod csr;
pub mod generate;
pub mod market;
pub mod npy;
mod rows;
pub mod source;
pub mod stats;

#[cfg(test)]
mod fixtures;

pub use cache::{is_binary, write as write_binary};
pub use control::{Control, Progress};
pub use csr::{Csr, CsrError, Shared};
pub use source::{Loaded, MatrixSource, Origin};
pub use stats::Stats;

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use self::market::{LineError, TextError};
use crate::quantity::Bytes;

/// An error of matrices.
#[derive(Debug, Error)]
pub enum MatrixError {
    #[error("`{text}` names no matrix: {why}; {remedy}")]
    Source {
        text: String,
        why: String,
        remedy: &'static str,
    },
    #[error("{}: cannot be read: {source}; {remedy}", .file.display())]
    Read {
        file: PathBuf,
        source: io::Error,
        remedy: &'static str,
    },
    #[error("{}, line {line}: {error}", .file.display())]
    Line {
        file: PathBuf,
        /// Counted from 1.
        line: u64,
        error: LineError,
    },
    #[error("{}: {error}", .file.display())]
    Text { file: PathBuf, error: TextError },
    #[error(
        "{}: the compressed data or the archive ends too early, after line {lines}; the file is \
         truncated: fetch or make it again", .file.display()
    )]
    Truncated { file: PathBuf, lines: u64 },
    #[error(
        "{what} needs {}, and {} of memory are available; free some, take a machine with more, \
         or a smaller matrix",
        Bytes(*.needed), Bytes(*.available)
    )]
    Memory {
        what: String,
        needed: u64,
        available: u64,
    },
    #[error("the system refuses {} of memory; check `ulimit -v`, or take a smaller matrix", Bytes(*.bytes))]
    Refused { bytes: u64 },
    #[error("the arrays of the matrix contradict each other: {0}")]
    Csr(#[from] CsrError),
    #[error("interrupted before the matrix was complete")]
    Interrupted,
}

/// Why a file of a matrix cannot be written or read.
#[derive(Debug, Error)]
pub enum FileError {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Such as an interruption.
    #[error(transparent)]
    Matrix(#[from] MatrixError),
}

/// What these first bytes of a file are, if they are of something that stands for the file, and
/// the remedy.
fn in_its_place(begin: &[u8]) -> Option<(&'static str, &'static str)> {
    if begin.starts_with(b"version https://git-lfs") {
        return Some((
            "a pointer of Git LFS, which stands for the file",
            "fetch the file itself with `git lfs pull`",
        ));
    }
    let begin = begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begin);
    match begin.trim_ascii_start().first() {
        Some(b'<') => Some((
            "an HTML or XML page, as servers send in place of a file",
            "see what it says, and fetch the file itself",
        )),
        Some(b'{') => Some((
            "a JSON text, as servers send in place of a file",
            "see what it says, and fetch the file itself",
        )),
        _ => None,
    }
}

//! Specifications of kernels and of graphs of them, in the form of PySchedCL's
//! authors (section 4 of the paper, Figure 8, and the files of their two
//! repositories), with optional fields of our own.
//!
//! * [`KernelSpec`] is a kernel file: `raw` has its fields, in the forms in
//!   which they are written. With
//!   values of its symbols it becomes a [`Kernel`] (`resolve`).
//! * [`dag`] reads graphs, in three forms, and `check` checks them.
//! * `agree` compares a kernel file with its source and with a compiler's answers;
//!   [`mod@infer`] makes a kernel file from a source.
//! * [`task`] builds the task graph that runs.
//! * [`fill`] makes the initial contents of buffers.
//! * [`starpu`] reads recordings of StarPU's runs as graphs.
//! * [`source`] reads OpenCL C as far as specifications need it.
//!
//! docs/specifications.md describes every field. Files are read here, but nothing is
//! run. Every error is a [`SpecError`] with its file and location.

mod agree;
#[cfg(test)]
mod changed_tests;
mod check;
pub mod dag;
pub mod fill;
pub mod infer;
mod kernel;
mod raw;
mod resolve;
pub mod scalar;
pub mod source;
pub mod starpu;
pub mod task;

pub use agree::Described;
pub use dag::{DagSpec, Specification, load};
pub use kernel::{ArgumentKind, ArgumentSpec, Direction, KernelSpec};
pub use resolve::{Argument, Buffer, Kernel, Sizes, check_required, check_sizes};

use std::fmt;
use std::path::{Path, PathBuf};

use pdawl_profiler::file::bounded_input;

use crate::expression::ExpressionError;

/// An error of a specification. Its message is one line: `FILE, line 3: field: why`.
#[derive(Clone, Debug, PartialEq)]
pub struct SpecError {
    pub file: PathBuf,
    /// Counted from 1, where the format has lines.
    pub line: Option<usize>,
    /// The field, as a path such as `inputBuffers[0].size`.
    pub field: Option<String>,
    /// What is wrong, and the remedy.
    pub why: String,
}

impl SpecError {
    /// An error of a whole file.
    pub fn file(file: &Path, why: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            field: None,
            why: why.into(),
        }
    }

    /// An error of a field.
    pub fn field(file: &Path, field: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            field: Some(field.into()),
            ..Self::file(file, why)
        }
    }

    /// An error of a line.
    pub fn line(file: &Path, line: usize, why: impl Into<String>) -> Self {
        Self {
            line: Some(line),
            ..Self::file(file, why)
        }
    }

    /// An error of a field's expression.
    pub fn expression(file: &Path, field: impl Into<String>, error: &ExpressionError) -> Self {
        Self::field(file, field, error.to_string())
    }

    /// The error with a line as well.
    pub fn at(self, line: Option<usize>) -> Self {
        Self {
            line: line.or(self.line),
            ..self
        }
    }

    /// An error of reading a file.
    pub fn io(file: &Path, error: &std::io::Error) -> Self {
        let why = match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
            std::io::ErrorKind::IsADirectory => "it is a folder; name a file".to_owned(),
            _ => format!("it cannot be read: {error}"),
        };
        Self::file(file, why)
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some(field) = &self.field {
            write!(f, ", {field}")?;
        }
        write!(f, ": {}", self.why)
    }
}

impl std::error::Error for SpecError {}

/// Most bytes of a specification or a source.
const MOST: u64 = 64 << 20;

/// Reads the text of a file, without a byte order mark.
///
/// # Errors
/// When there is no such file, it cannot be read, or is not text.
fn read(file: &Path) -> Result<String, SpecError> {
    let bytes = bounded_input(file, MOST).map_err(|error| SpecError::io(file, &error))?;
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| SpecError::file(file, "it is not text (UTF-8)"))?;
    // Within a source, behind what a runtime puts before it, the mark is no OpenCL C.
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

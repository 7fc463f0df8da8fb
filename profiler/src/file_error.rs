//! The errors of reading and writing the files of models and datasets.

use std::io;
use std::path::Path;

use thiserror::Error;

use crate::file::bounded;

/// Bytes of a model or a dataset, at most.
const MOST: u64 = 256 << 20;

/// What the system refused.
#[derive(Debug, Error)]
pub enum FileError {
    #[error(
        "{file}: cannot be read: {source}; give the path of a file that exists and can be read"
    )]
    Read { file: String, source: io::Error },

    #[error(
        "{file}: cannot be written: {source}; give a path in a folder that exists and can be written"
    )]
    Write { file: String, source: io::Error },
}

impl FileError {
    /// Of reading this file.
    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read {
            file: path.display().to_string(),
            source,
        }
    }

    /// Of writing this file.
    pub(crate) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write {
            file: path.display().to_string(),
            source,
        }
    }
}

/// The content of a file.
///
/// # Errors
/// [`FileError::Read`].
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    bounded(path, MOST).map_err(|source| FileError::read(path, source))
}

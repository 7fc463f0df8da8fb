//! The errors of reading and writing files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use thiserror::Error;

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

/// The content of a file of at most so many bytes: what never ends, such as
/// `/dev/zero`, ends here.
///
/// # Errors
/// What the system refuses, and a file that is longer.
pub fn bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is longer than the {most} bytes that are read"),
        )),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_is_read_as_there_may_be_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, b"four").unwrap();
        assert_eq!(bounded(&path, 4).unwrap(), b"four");
        let error = bounded(&path, 3).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(error.to_string().contains("longer than the 3 bytes"));
        #[cfg(unix)]
        assert!(bounded(Path::new("/dev/zero"), 1 << 16).is_err());
    }
}

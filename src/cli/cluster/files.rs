//! Files of results, which the first node writes.

use std::io;
use std::path::{Path, PathBuf};

use pdawl_api::matrix::npy::{ElementType, write_array_header};
use pdawl_api::session::nodes::Sink;

use super::options::is_first;
use crate::failure::Failure;
use crate::output::Output;
use crate::paths::Paths;

/// A result that the first node writes: a space of the workload, to a file.
pub struct ResultFile {
    pub space: usize,
    path: PathBuf,
    output: Output,
    header: Vec<u8>,
}

/// What a result is.
pub struct ResultArray<'a> {
    pub space: usize,
    pub shape: &'a [u64],
    pub element: ElementType,
}

impl ResultFile {
    /// Tries the path of a result; only at the first node.
    ///
    /// # Errors
    /// When it is that of an input or another output, or cannot be written.
    pub fn prepare(
        path: Option<&Path>,
        paths: &mut Paths,
        array: &ResultArray,
    ) -> Result<Option<Self>, Failure> {
        let Some(path) = path else {
            return Ok(None);
        };
        let mut header = Vec::new();
        write_array_header(&mut header, array.shape, array.element)
            .map_err(|error| Failure::failed(error, "a report of this fault"))?;
        let bytes = Self::of_bytes(path, paths, array.space)?;
        Ok(bytes.map(|bytes| Self { header, ..bytes }))
    }

    /// As [`Self::prepare`], of a file that has the bytes of a space and nothing else.
    ///
    /// # Errors
    /// As [`Self::prepare`].
    pub fn of_bytes(path: &Path, paths: &mut Paths, space: usize) -> Result<Option<Self>, Failure> {
        if !is_first() {
            return Ok(None);
        }
        Ok(Some(Self {
            space,
            path: path.to_owned(),
            output: paths.output(path)?,
            header: Vec::new(),
        }))
    }

    /// Moves the file to its path.
    ///
    /// # Errors
    /// When that is not possible. A file that was there before then stays.
    pub fn finish(self) -> Result<(), Failure> {
        self.output.finish()
    }

    fn with_path(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
    }
}

impl Sink for ResultFile {
    fn begin(&mut self) -> io::Result<()> {
        let begun = self.output.begin();
        let begun = begun.and_then(|()| self.output.append(&self.header));
        begun.map_err(|error| self.with_path(&error))
    }

    fn next(&mut self, bytes: &[u8]) -> io::Result<()> {
        let appended = self.output.append(bytes);
        appended.map_err(|error| self.with_path(&error))
    }
}

//! The files that a command reads and writes. No output may overwrite another output
//! or an input.

use std::path::{Path, PathBuf};

use super::failure::Failure;
use super::output::{Output, canonical};

/// The files of a command.
#[derive(Debug, Default)]
pub struct Paths {
    read: Vec<PathBuf>,
    written: Vec<PathBuf>,
}

impl Paths {
    /// The inputs of a command.
    pub fn reading<'a>(files: impl IntoIterator<Item = &'a Path>) -> Self {
        Self {
            read: files.into_iter().map(canonical).collect(),
            written: Vec::new(),
        }
    }

    /// Tries the path of an output.
    ///
    /// # Errors
    /// When the path is that of an input or of another output, and as
    /// [`Output::prepare`].
    pub fn output(&mut self, path: &Path) -> Result<Output, Failure> {
        let place = canonical(path);
        let shown = path.display();
        if self.read.contains(&place) {
            return Err(Failure::usage(
                format!("{shown} is read by this command, and would be overwritten"),
                "another path for the output",
            ));
        }
        if self.written.contains(&place) {
            return Err(Failure::usage(
                format!("two outputs have the path {shown}"),
                "a different path for each",
            ));
        }
        self.written.push(place);
        Output::prepare(path)
    }
}

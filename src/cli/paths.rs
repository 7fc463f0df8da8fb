//! Which files a command reads and which it writes: no output goes over another
//! one, nor over what the command reads.

use std::path::{Path, PathBuf};

use super::failure::Failure;
use super::output::{Output, place};

/// The files of a command.
#[derive(Debug, Default)]
pub struct Paths {
    read: Vec<PathBuf>,
    written: Vec<PathBuf>,
}

impl Paths {
    /// Files that are read.
    pub fn reading<'a>(files: impl IntoIterator<Item = &'a Path>) -> Self {
        Self {
            read: files.into_iter().map(place).collect(),
            written: Vec::new(),
        }
    }

    /// Tries a path that is to be written; the files that are read are known
    /// by then.
    ///
    /// # Errors
    /// When something is read from there or written there already, and as
    /// [`Output::prepare`].
    pub fn output(&mut self, path: &Path) -> Result<Output, Failure> {
        let place = place(path);
        let shown = path.display();
        if self.read.contains(&place) {
            return Err(Failure::usage(
                format!("{shown} is read by this command, and would be written over"),
                "another path for the output",
            ));
        }
        if self.written.contains(&place) {
            return Err(Failure::usage(
                format!("two outputs have the path {shown}"),
                "a path of its own for each",
            ));
        }
        self.written.push(place);
        Output::prepare(path)
    }
}

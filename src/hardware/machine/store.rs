//! Stores machine files: those in the user's directory, then those that ship with
//! the program.

use std::io;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use pdawl_profiler::atomic_file;
use pdawl_profiler::file::bounded;

use super::change::changed;
use super::{Fingerprint, MachineError, MachineFile};
use crate::file_store::{FileStore, StoreKind, StoredFile};

static MACHINES: StoreKind = StoreKind {
    what: "machine",
    variable: "PDAWL_MACHINES",
    folder: "machines",
    ending: "toml",
    shipped: &[
        ("h200", include_str!("../../../datasets/machines/h200.toml")),
        (
            "k20-32",
            include_str!("../../../datasets/machines/k20-32.toml"),
        ),
        (
            "k20-40",
            include_str!("../../../datasets/machines/k20-40.toml"),
        ),
        ("k40", include_str!("../../../datasets/machines/k40.toml")),
        (
            "laptop",
            include_str!("../../../datasets/machines/laptop.toml"),
        ),
        (
            "m2070x2",
            include_str!("../../../datasets/machines/m2070x2.toml"),
        ),
        (
            "titan",
            include_str!("../../../datasets/machines/titan.toml"),
        ),
        (
            "v100x1",
            include_str!("../../../datasets/machines/v100x1.toml"),
        ),
        (
            "v100x2",
            include_str!("../../../datasets/machines/v100x2.toml"),
        ),
        (
            "v100x4",
            include_str!("../../../datasets/machines/v100x4.toml"),
        ),
        (
            "v100x7",
            include_str!("../../../datasets/machines/v100x7.toml"),
        ),
    ],
    remedy: "Add one with `pdawl machine save NAME`, or as a file NAME.toml",
    instead: "",
};

/// The machine files that can be found by name.
#[derive(Clone, Debug)]
pub struct MachineStore {
    files: FileStore,
}

impl MachineStore {
    /// The user's store: `$PDAWL_MACHINES`, else `$XDG_CONFIG_HOME/pdawl/machines`,
    /// else `~/.config/pdawl/machines`, before the shipped files.
    pub fn of_user() -> Self {
        Self {
            files: FileStore::of_user(&MACHINES),
        }
    }

    /// A store with this directory before the shipped files.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self {
            files: FileStore::at(&MACHINES, directory),
        }
    }

    /// The names of all machine files, sorted, each once.
    pub fn names(&self) -> Vec<String> {
        self.files.names()
    }

    /// The machine of this name. A user's file hides a shipped one.
    ///
    /// # Errors
    /// An unknown name, with the known ones; a file that cannot be read or is
    /// wrong.
    pub fn find(&self, name: &str) -> Result<MachineFile, MachineError> {
        match self.files.find(name)? {
            StoredFile::File(path) => load(&path),
            StoredFile::Shipped(text) => {
                MachineFile::parse(text, &format!("{} (shipped)", self.files.file(name)))
            }
        }
    }

    /// The machine whose file has a fingerprint that `here` finds to be this machine's, if there
    /// is one. A broken file does not hide a right one.
    pub fn of_fingerprint(
        &self,
        here: impl Fn(Option<&str>) -> Fingerprint,
    ) -> Option<MachineFile> {
        let mut files = (self.names().into_iter()).filter_map(|name| self.find(&name).ok());
        files.find(|file| {
            let recorded = file.fingerprint.as_deref();
            here(recorded).is(recorded)
        })
    }

    /// Saves a machine under its name, and returns the file's path. The file
    /// is written to a temporary file and renamed, so that readers see it whole.
    ///
    /// # Errors
    /// A name or figure that [`Self::find`] would refuse, and a directory that
    /// cannot be written.
    pub fn save(&self, machine: &MachineFile) -> Result<PathBuf, MachineError> {
        super::check::check(machine, &self.files.file(&machine.name))?;
        let text = machine.to_toml()?;
        let path = self.files.path_to_write(&machine.name)?;
        let written = atomic_file::write(&path, |out| out.write_all(text.as_bytes()));
        written.map_err(|source| MachineError::Write {
            file: path.clone(),
            source,
            variable: MACHINES.variable,
        })?;
        Ok(path)
    }
}

/// Bytes of a machine file, at most.
const MOST: u64 = 16 << 20;

/// The machine file of a name, or of a path: what has a separator or ends in `.toml`. Changes may
/// follow after a comma: `k40,gpu0.speed=2x`.
///
/// # Errors
/// When there is no such file, it is wrong, or a change is none.
pub fn find(name: &str) -> Result<MachineFile, MachineError> {
    if let Some((base, changes)) = with_changes(name) {
        return changed(&find(base)?, name, changes);
    }
    match name.contains(MAIN_SEPARATOR) || name.ends_with(".toml") {
        true => load(Path::new(name)),
        false => MachineStore::of_user().find(name),
    }
}

/// A machine's name or path, and its changes, if a name has some.
pub fn with_changes(name: &str) -> Option<(&str, &str)> {
    name.split_once(',').filter(|_| !Path::new(name).is_file())
}

/// Reads a machine file.
///
/// # Errors
/// A file that cannot be read or is wrong.
pub fn load(path: &Path) -> Result<MachineFile, MachineError> {
    let text = bounded_text(MACHINES.what, path)?;
    MachineFile::parse(&text, &path.display().to_string())
}

/// The text of a machine or cluster file; `what` is which of them, for messages.
pub(super) fn bounded_text(what: &'static str, path: &Path) -> Result<String, MachineError> {
    let text = bounded(path, MOST).and_then(|bytes| {
        String::from_utf8(bytes)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no text (UTF-8)"))
    });
    text.map_err(|source| MachineError::Read {
        what,
        file: path.display().to_string(),
        source,
    })
}

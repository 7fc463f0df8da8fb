//! The store of the user's datasets: measured runs, one file a machine.

use std::path::PathBuf;

use crate::file_store::{FileStore, StoreError, StoreKind};

static DATASETS: StoreKind = StoreKind {
    what: "dataset",
    variable: "PDAWL_DATASETS",
    folder: "datasets",
    ending: "csv",
    shipped: &[],
    remedy: "Make one with `pdawl profile`",
    instead: "--out FILE, or ",
};

/// The user's datasets, by the name of their machine.
#[derive(Clone, Debug)]
pub struct DatasetStore {
    files: FileStore,
}

impl DatasetStore {
    /// The user's: `$PDAWL_DATASETS`, else `$XDG_CONFIG_HOME/pdawl/datasets`,
    /// else `~/.config/pdawl/datasets`.
    pub fn of_user() -> Self {
        Self {
            files: FileStore::of_user(&DATASETS),
        }
    }

    /// A store in this directory.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self {
            files: FileStore::at(&DATASETS, directory),
        }
    }

    /// The machines that there are datasets of, sorted.
    pub fn names(&self) -> Vec<String> {
        self.files.names()
    }

    /// Where the runs of a machine are kept, whether there are any or not.
    ///
    /// # Errors
    /// A name that no file can have; no directory.
    pub fn path(&self, machine: &str) -> Result<PathBuf, StoreError> {
        self.files.path(machine)
    }

    /// As [`Self::path`], and makes the directory.
    ///
    /// # Errors
    /// As [`Self::path`], and a directory that cannot be made.
    pub fn path_to_write(&self, machine: &str) -> Result<PathBuf, StoreError> {
        self.files.path_to_write(machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let store = DatasetStore::at(folder.path().join("deep"));
        let path = store.path("k40").unwrap();
        assert_eq!(path, folder.path().join("deep/k40.csv"));
        assert!(store.names().is_empty());
        assert_eq!(store.path_to_write("k40").unwrap(), path);
        std::fs::write(&path, "").unwrap();
        assert_eq!(store.names(), ["k40"]);
        let blocked = DatasetStore::at(path.join("below a file"));
        let message = blocked.path_to_write("k40").unwrap_err().to_string();
        assert!(message.contains("PDAWL_DATASETS"), "{message}");
        let message = store.path("../k40").unwrap_err().to_string();
        assert!(message.contains("`../k40` cannot name"), "{message}");
    }
}

//! Where the user's datasets are kept: measured runs, one file a machine.

use std::path::PathBuf;

use thiserror::Error;

use crate::shelf::{Files, Sort};

static DATASETS: Sort = Sort {
    variable: "PDAWL_DATASETS",
    folder: "datasets",
    ending: "csv",
    shipped: &[],
};

/// The user's datasets, by the name of their machine.
#[derive(Clone, Debug)]
pub struct DatasetStore {
    files: Files,
}

/// Why there is no dataset of a name.
#[derive(Debug, Error)]
pub enum DatasetStoreError {
    #[error(
        "`{name}` cannot name a dataset: use 1 to 64 letters, digits, `-`, `_` or `.`, \
         beginning with a letter or digit"
    )]
    Name { name: String },

    #[error(
        "{directory}: cannot be made: {source}; --out FILE, or set PDAWL_DATASETS to a writable directory"
    )]
    Make {
        directory: String,
        source: std::io::Error,
    },

    #[error(
        "no directory for datasets: neither PDAWL_DATASETS, XDG_CONFIG_HOME nor HOME is set; \
         set PDAWL_DATASETS to one"
    )]
    NoDirectory,
}

impl DatasetStore {
    /// The user's: `$PDAWL_DATASETS`, else `$XDG_CONFIG_HOME/pdawl/datasets`,
    /// else `~/.config/pdawl/datasets`.
    pub fn of_user() -> Self {
        Self {
            files: Files::of_user(&DATASETS),
        }
    }

    /// A shelf in this directory.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self {
            files: Files::at(&DATASETS, directory),
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
    pub fn path(&self, machine: &str) -> Result<PathBuf, DatasetStoreError> {
        self.files.path(machine).ok_or_else(|| {
            if crate::shelf::is_name(machine) {
                DatasetStoreError::NoDirectory
            } else {
                DatasetStoreError::Name {
                    name: machine.to_owned(),
                }
            }
        })
    }

    /// As [`Self::path`], in a directory that exists from now on.
    ///
    /// # Errors
    /// As [`Self::path`], and a directory that cannot be made.
    pub fn ready(&self, machine: &str) -> Result<PathBuf, DatasetStoreError> {
        let path = self.path(machine)?;
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(|source| DatasetStoreError::Make {
                directory: directory.display().to_string(),
                source,
            })?;
        }
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = DatasetStore::at(folder.path().join("deep"));
        let path = shelf.path("k40").unwrap();
        assert_eq!(path, folder.path().join("deep/k40.csv"));
        assert!(shelf.names().is_empty());
        assert_eq!(shelf.ready("k40").unwrap(), path);
        std::fs::write(&path, "").unwrap();
        assert_eq!(shelf.names(), ["k40"]);
        let blocked = DatasetStore::at(path.join("below a file"));
        let message = blocked.ready("k40").unwrap_err().to_string();
        assert!(message.contains("PDAWL_DATASETS"), "{message}");
        let message = shelf.path("../k40").unwrap_err().to_string();
        assert!(message.contains("`../k40` cannot name"), "{message}");
    }
}

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
pub struct DatasetShelf {
    files: Files,
}

/// Why there is no dataset of a name.
#[derive(Debug, Error)]
pub enum DatasetPlaceError {
    #[error(
        "`{name}` cannot name a dataset: use 1 to 64 letters, digits, `-`, `_` or `.`, \
         beginning with a letter or digit"
    )]
    Name { name: String },

    #[error(
        "no directory for datasets: neither PDAWL_DATASETS, XDG_CONFIG_HOME nor HOME is set; \
         set PDAWL_DATASETS to one"
    )]
    NoDirectory,
}

impl DatasetShelf {
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
    pub fn path(&self, machine: &str) -> Result<PathBuf, DatasetPlaceError> {
        self.files.path(machine).ok_or_else(|| {
            if crate::shelf::is_name(machine) {
                DatasetPlaceError::NoDirectory
            } else {
                DatasetPlaceError::Name {
                    name: machine.to_owned(),
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = DatasetShelf::at(folder.path());
        let path = shelf.path("k40").unwrap();
        assert_eq!(path, folder.path().join("k40.csv"));
        assert!(shelf.names().is_empty());
        std::fs::write(&path, "").unwrap();
        assert_eq!(shelf.names(), ["k40"]);
        let message = shelf.path("../k40").unwrap_err().to_string();
        assert!(message.contains("`../k40` cannot name"), "{message}");
    }
}

//! Stores cluster files: those in the user's directory, then those that ship with the
//! program.

use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use pdawl_profiler::atomic_file;

use super::store::bounded_text;
use super::{ClusterFile, MachineError};
use crate::file_store::{FileStore, StoreKind, StoredFile};

static CLUSTERS: StoreKind = StoreKind {
    what: "cluster",
    variable: "PDAWL_CLUSTERS",
    folder: "clusters",
    ending: "toml",
    shipped: &[
        ("four", include_str!("../../../datasets/clusters/four.toml")),
        (
            "thousand",
            include_str!("../../../datasets/clusters/thousand.toml"),
        ),
        (
            "unicorn",
            include_str!("../../../datasets/clusters/unicorn.toml"),
        ),
    ],
    remedy: "Measure one with `mpirun ... pdawl cluster measure NAME`, or write a file NAME.toml",
    instead: "",
};

/// The cluster files that can be found by name.
#[derive(Clone, Debug)]
pub struct ClusterStore {
    files: FileStore,
}

impl ClusterStore {
    /// The user's store: `$PDAWL_CLUSTERS`, else `$XDG_CONFIG_HOME/pdawl/clusters`, else
    /// `~/.config/pdawl/clusters`, before the shipped files.
    pub fn of_user() -> Self {
        Self {
            files: FileStore::of_user(&CLUSTERS),
        }
    }

    /// A store with this directory before the shipped files.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self {
            files: FileStore::at(&CLUSTERS, directory),
        }
    }

    /// The names of all cluster files, sorted, each once.
    pub fn names(&self) -> Vec<String> {
        self.files.names()
    }

    /// The cluster of a name, or of a path: what has a separator or ends in `.toml`. A
    /// user's file hides a shipped one.
    ///
    /// # Errors
    /// An unknown name, with the known ones; a file that cannot be read or is wrong.
    pub fn find(&self, name: &str) -> Result<ClusterFile, MachineError> {
        if name.contains(MAIN_SEPARATOR) || name.ends_with(".toml") {
            return load(Path::new(name));
        }
        match self.files.find(name)? {
            StoredFile::File(path) => load(&path),
            StoredFile::Shipped(text) => {
                ClusterFile::parse(text, &format!("{} (shipped)", self.files.file(name)))
            }
        }
    }

    /// The user's file of this name, if there is one.
    ///
    /// # Errors
    /// A text that cannot be a name, and a user without a directory.
    pub fn existing(&self, name: &str) -> Result<Option<PathBuf>, MachineError> {
        let path = self.files.path(name)?;
        Ok(path.exists().then_some(path))
    }

    /// Saves a cluster under its name, whole or not at all, and returns the file's path.
    ///
    /// # Errors
    /// A name or figure that [`Self::find`] would refuse, and a directory that cannot be
    /// written.
    pub fn save(&self, cluster: &ClusterFile) -> Result<PathBuf, MachineError> {
        cluster.check(&self.files.file(&cluster.name))?;
        let text = cluster.to_toml()?;
        let path = self.files.path_to_write(&cluster.name)?;
        let written = atomic_file::write(&path, |out| out.write_all(text.as_bytes()));
        written.map_err(|source| MachineError::Write {
            file: path.clone(),
            source,
            variable: CLUSTERS.variable,
        })?;
        Ok(path)
    }
}

fn load(path: &Path) -> Result<ClusterFile, MachineError> {
    let text = bounded_text(CLUSTERS.what, path)?;
    ClusterFile::parse(&text, &path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::MachineStore;

    #[test]
    fn shipped_clusters_are_right_and_have_their_names() {
        let machines = MachineStore::at("/nonexistent");
        let clusters = ClusterStore::at("/nonexistent");
        assert_eq!(clusters.names(), ["four", "thousand", "unicorn"]);
        for (name, nodes) in [("four", 4), ("thousand", 1024), ("unicorn", 10)] {
            let cluster = clusters.find(name).unwrap();
            assert_eq!(cluster.name, name);
            assert_eq!(cluster.machines(&machines).unwrap().len(), nodes);
        }
    }

    #[test]
    fn a_saved_cluster_is_found_by_its_name_and_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let store = ClusterStore::at(folder.path());
        let mut cluster = store.find("four").unwrap();
        cluster.name = "mine".to_owned();
        assert_eq!(store.existing("mine").unwrap(), None);
        let path = store.save(&cluster).unwrap();
        assert_eq!(store.existing("mine").unwrap(), Some(path.clone()));
        assert_eq!(store.find("mine").unwrap(), cluster);
        assert_eq!(store.find(&path.display().to_string()).unwrap(), cluster);
        cluster.network.bandwidth = f64::NAN;
        assert!(store.save(&cluster).is_err());
    }

    #[test]
    fn what_is_not_there_is_reported_with_the_remedy() {
        let store = ClusterStore::at("/nonexistent");
        let error = store.find("five").unwrap_err().to_string();
        assert!(error.contains("known are four") && error.contains("cluster measure"));
        let error = store.find("./five.toml").unwrap_err().to_string();
        assert!(error.contains("cluster file") && error.contains("pdawl cluster list"));
    }
}

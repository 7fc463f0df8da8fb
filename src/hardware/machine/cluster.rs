//! Cluster files: nodes by machine file, and the network between them.
//!
//! The format is TOML with the header `format = "pdawl-cluster-file/1"`. Units are as in machine
//! files.
//!
//! Stores cluster files: those in the user's directory, then those that ship with the
//! program.

use std::collections::BTreeMap;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use pdawl_profiler::atomic_file;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::file_store::{FileStore, StoreKind, StoredFile, check_name};

use super::store::bounded_text;
use super::{MachineError, MachineFile, MachineStore};

/// The header of this version of the format.
pub const FORMAT: &str = "pdawl-cluster-file/1";

/// Nodes that a file may have, as a rank of a node is a number of 32 bits and a run keeps a
/// description of each.
const MOST_NODES: u64 = 1 << 16;

/// A described cluster.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterFile {
    /// Always [`FORMAT`].
    pub format: String,
    /// What the command line calls it, and the file's name without `.toml`.
    pub name: String,
    /// One line for lists.
    pub title: String,
    /// What it is and where its figures come from, in a few sentences.
    pub description: String,
    /// Nodes in the order of their ranks.
    #[serde(rename = "node")]
    pub nodes: Vec<NodesSpec>,
    pub network: NetworkSpec,
    /// For a key, a group of keys or `everything`: where its figures come from.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub source: BTreeMap<String, String>,
}

/// Equal nodes.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodesSpec {
    /// The name of a machine file.
    pub machine: String,
    pub count: u64,
}

/// The network: a link from each node to one switch.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// Bytes a second of a node's link in one direction.
    pub bandwidth: f64,
    /// From a message's last byte at the sender to its arrival.
    pub latency_ns: u64,
    /// Time that a node's driver needs for a message that it sends, and for one that it
    /// receives.
    pub message_ns: u64,
    /// Whether a link carries its bandwidth in both directions at once.
    pub full_duplex: bool,
    /// Bytes a second that the switch carries in all; absent: as much as its links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch_bandwidth: Option<f64>,
}

impl ClusterFile {
    /// Reads and checks a description; `file` is its name in messages.
    ///
    /// # Errors
    /// Names the file, the key and what to do.
    pub fn parse(text: &str, file: &str) -> Result<Self, MachineError> {
        let parse_error = |e: toml::de::Error| MachineError::Parse {
            file: file.to_owned(),
            why: e.to_string().trim_end().to_owned(),
        };
        let table: toml::Table = toml::from_str(text).map_err(parse_error)?;
        let format = table.get("format").and_then(toml::Value::as_str);
        if format != Some(FORMAT) {
            return Err(MachineError::Format {
                file: file.to_owned(),
                expected: FORMAT,
                found: format.map_or("none".to_owned(), |found| format!("`{found}`")),
            });
        }
        let cluster: Self = toml::from_str(text).map_err(parse_error)?;
        cluster.check(file)?;
        Ok(cluster)
    }

    /// The text of the file, without comments.
    ///
    /// # Errors
    /// A number that TOML cannot write.
    pub fn to_toml(&self) -> Result<String, MachineError> {
        toml::to_string(self).map_err(|e| MachineError::Parse {
            file: format!("{}.toml", self.name),
            why: e.to_string(),
        })
    }

    /// The number of nodes.
    pub fn count(&self) -> u64 {
        let counts = self.nodes.iter().map(|nodes| nodes.count);
        counts.fold(0, u64::saturating_add)
    }

    /// The cluster with so many nodes: the first ones, or more than it has if all are alike.
    ///
    /// # Errors
    /// More nodes than there are of unlike machines, and numbers that no file may have.
    pub fn with_nodes(&self, count: u64) -> Result<Self, MachineError> {
        let has = self.count();
        let mut cluster = self.clone();
        let alike =
            |nodes: &[NodesSpec]| nodes.windows(2).all(|two| two[0].machine == two[1].machine);
        if count <= has {
            let mut left = count;
            for nodes in &mut cluster.nodes {
                nodes.count = nodes.count.min(left);
                left -= nodes.count;
            }
            cluster.nodes.retain(|nodes| nodes.count > 0);
        } else if alike(&self.nodes) {
            cluster.nodes.truncate(1);
            cluster.nodes[0].count = count;
        } else {
            return Err(MachineError::UnlikeNodes {
                name: self.name.clone(),
                has,
                asked: count,
            });
        }
        cluster.check(&self.name)?;
        Ok(cluster)
    }

    /// The machine of each node, in the order of their ranks.
    ///
    /// # Errors
    /// A machine that the store does not have, or that is wrong.
    pub fn machines(&self, store: &MachineStore) -> Result<Vec<MachineFile>, MachineError> {
        let mut machines = Vec::new();
        for nodes in &self.nodes {
            let machine = store.find(&nodes.machine)?;
            machines.extend(std::iter::repeat_n(machine, nodes.count as usize));
        }
        Ok(machines)
    }

    /// Checks names and figures; `file` is its name in messages.
    pub(super) fn check(&self, file: &str) -> Result<(), MachineError> {
        check_name("cluster", &self.name)?;
        let wrong = |key: &str, value: String, why, remedy: &str| MachineError::Value {
            file: file.to_owned(),
            key: key.to_owned(),
            value,
            why,
            remedy: remedy.to_owned(),
        };
        let count = self.count();
        if self.nodes.iter().any(|nodes| nodes.count == 0) || count == 0 {
            let remedy = "give each [[node]] a count of at least 1";
            return Err(wrong(
                "node.count",
                "0".to_owned(),
                "a cluster has nodes",
                remedy,
            ));
        }
        if count > MOST_NODES {
            let remedy = "give at most 65536 nodes";
            return Err(wrong(
                "node.count",
                count.to_string(),
                "these are too many",
                remedy,
            ));
        }
        let network = &self.network;
        let bandwidths = [
            ("network.bandwidth", Some(network.bandwidth)),
            ("network.switch_bandwidth", network.switch_bandwidth),
        ];
        for (key, bandwidth) in bandwidths {
            let Some(bandwidth) = bandwidth else { continue };
            if !(1e5..=1e15).contains(&bandwidth) {
                let remedy = "give bytes a second, such as 1.25e9 for 10 Gbit/s";
                return Err(wrong(
                    key,
                    bandwidth.to_string(),
                    "no network has it",
                    remedy,
                ));
            }
        }
        for (key, ns) in [
            ("network.latency_ns", network.latency_ns),
            ("network.message_ns", network.message_ns),
        ] {
            if ns > 1_000_000_000 {
                let remedy = "give nanoseconds, such as 20000 for 20 us";
                return Err(wrong(
                    key,
                    ns.to_string(),
                    "this is more than a second",
                    remedy,
                ));
            }
        }
        Ok(())
    }
}

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
    use crate::machine::MachineStore;

    use super::*;

    const FOUR: &str = include_str!("../../../datasets/clusters/four.toml");

    #[test]
    fn what_is_wrong_is_named_with_the_remedy() {
        for (from, to, part) in [
            (
                "pdawl-cluster-file/1",
                "pdawl-machine/1",
                "must be `format = \"pdawl-cluster-file/1\"`",
            ),
            ("count = 4", "count = 0", "count of at least 1"),
            ("count = 4", "count = 70000", "at most 65536"),
            ("bandwidth = 1.25e9", "bandwidth = 10", "bytes a second"),
            (
                "latency_ns = 20_000",
                "latency_ns = 20_000_000_000",
                "20 us",
            ),
            ("full_duplex", "fullduplex", "unknown field"),
        ] {
            assert!(FOUR.contains(from), "{from}");
            let error = ClusterFile::parse(&FOUR.replace(from, to), "x").unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
        let text = FOUR.replace("machine = \"k40\"", "machine = \"k41\"");
        let cluster = ClusterFile::parse(&text, "x").unwrap();
        let error = cluster
            .machines(&MachineStore::at("/nonexistent"))
            .unwrap_err();
        assert!(error.to_string().contains("k41"), "{error}");
    }

    #[test]
    fn a_file_is_what_it_was_when_it_is_written_and_read() {
        let cluster = ClusterFile::parse(FOUR, "four").unwrap();
        let text = cluster.to_toml().unwrap();
        assert_eq!(ClusterFile::parse(&text, "again").unwrap(), cluster);
    }

    /// The machines of the nodes, a letter each.
    fn machines(cluster: &ClusterFile) -> String {
        let nodes = cluster.nodes.iter();
        nodes
            .map(|nodes| nodes.machine.repeat(nodes.count as usize))
            .collect()
    }

    #[test]
    fn nodes_are_the_first_ones_or_more_of_equal_ones() {
        let mut cluster = ClusterFile::parse(FOUR, "four").unwrap();
        let node = |machine: &str, count| NodesSpec {
            machine: machine.to_owned(),
            count,
        };
        cluster.nodes = vec![node("a", 2), node("b", 1), node("a", 2)];
        for count in 1..=5 {
            let fewer = cluster.with_nodes(count).unwrap();
            assert_eq!(machines(&fewer), &"aabaa"[..count as usize]);
        }
        let error = cluster.with_nodes(6).unwrap_err().to_string();
        assert!(
            error.contains("has 5 nodes") && error.contains("at most 5"),
            "{error}"
        );
        cluster.nodes = vec![node("a", 2), node("a", 1)];
        assert_eq!(machines(&cluster.with_nodes(7).unwrap()), "aaaaaaa");
        let error = cluster.with_nodes(70_000).unwrap_err().to_string();
        assert!(error.contains("at most 65536"), "{error}");
        assert!(cluster.with_nodes(0).is_err());
    }

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

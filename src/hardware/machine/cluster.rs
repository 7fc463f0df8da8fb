//! Cluster files: nodes by machine file, and the network between them.
//!
//! The format is TOML with the header `format = "pdawl-cluster-file/1"`. Units are as in machine
//! files.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MachineError, MachineFile, MachineStore};
use crate::file_store::check_name;

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

#[cfg(test)]
mod tests {
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
}

//! Measures a cluster: the machines of its nodes, and the network between them.
//!
//! All ranks call [`measure`]. Rank 0 leads (`lead`): it decides which ranks measure their machines
//! and who exchanges messages with whom, orders one thing after the other and hears what
//! ranks measured. Every rank answers the others while it waits (`peer`).
//! `figures` makes a cluster file's figures of what was measured.

mod figures;
mod lead;
mod peer;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use super::ClusterError;
use crate::machine::cluster::{FORMAT, NetworkSpec, NodesSpec};
use crate::machine::{ClusterFile, MachineFile};
use pdawl_core::cluster::wire::Wire;
use peer::Peer;

/// What a rank knows of the machine that it runs on.
pub struct ThisMachine<'a> {
    pub fingerprint: String,
    /// The machine file that the user of this rank has of a fingerprint.
    pub known: &'a dyn Fn(&str) -> Option<MachineFile>,
    /// Measures this machine, or says why that is impossible.
    pub measure: &'a mut dyn FnMut() -> Result<MachineFile, String>,
}

/// How a cluster is measured.
#[derive(Clone, Copy, Debug)]
pub struct MeasureOptions {
    /// Bytes of the longest message.
    pub most_bytes: u64,
}

impl Default for MeasureOptions {
    /// 256 MiB: 20 ms at 100 Gbit/s.
    fn default() -> Self {
        Self {
            most_bytes: 256 << 20,
        }
    }
}

/// A measured cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredCluster {
    /// By rank: what its system calls itself.
    pub hosts: Vec<String>,
    /// By rank: its machine, by the place in [`Self::machines`].
    pub of_rank: Vec<usize>,
    /// Unlike machines.
    pub machines: Vec<FoundMachine>,
    pub network: NetworkSpec,
    /// Where the network's figures come from, by key.
    pub source: BTreeMap<String, String>,
}

/// The machine of some nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundMachine {
    pub file: MachineFile,
    /// The rank that measured it; none if there was a file of it.
    pub measured_by: Option<usize>,
}

/// Measures the machines and the network. All ranks call it at the same time; rank 0 gets
/// the result, and `progress` tells it what is measured next.
///
/// # Errors
/// A single rank, a machine that cannot be measured, a lost rank, and Ctrl-C. All ranks end
/// then.
pub fn measure(
    wire: &mut dyn Wire,
    this: ThisMachine,
    options: MeasureOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&str),
) -> Result<Option<MeasuredCluster>, ClusterError> {
    if wire.size() < 2 {
        return Err(ClusterError::Stopped(
            "a network is between two nodes, and there is one; start two or more with mpirun"
                .to_owned(),
        ));
    }
    let is_first = wire.rank() == 0;
    let mut peer = Peer::new(wire, stop);
    if !is_first {
        return peer.follow(this).map(|()| None);
    }
    match lead::lead(&mut peer, this, options, progress) {
        Ok(measured) => peer.dismiss(None).map(|()| Some(measured)),
        Err(error) => {
            // The others learn why; an error of telling them would hide the first one.
            let _ = peer.dismiss(Some(error.to_string()));
            Err(error)
        }
    }
}

/// At rank 0, instead of [`measure`]: ends it on all ranks, as nothing can be measured.
///
/// # Errors
/// When the wire has failed.
pub fn refuse(wire: &mut dyn Wire, why: &str) -> Result<(), ClusterError> {
    peer::tell_all(wire, Some(why.to_owned()))
}

/// Hosts that a description names.
const NAMED_HOSTS: usize = 8;

impl MeasuredCluster {
    /// A cluster file of this name. `machines` are the names of the files of
    /// [`Self::machines`].
    pub fn file(&self, name: &str, machines: &[String]) -> ClusterFile {
        let mut nodes: Vec<NodesSpec> = Vec::new();
        for machine in self.of_rank.iter().map(|machine| &machines[*machine]) {
            match nodes.last_mut() {
                Some(last) if last.machine == *machine => last.count += 1,
                _ => nodes.push(NodesSpec {
                    machine: machine.clone(),
                    count: 1,
                }),
            }
        }
        let mut hosts = self.hosts.clone();
        hosts.dedup();
        let more = match hosts.len().saturating_sub(NAMED_HOSTS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        hosts.truncate(NAMED_HOSTS);
        let count = self.hosts.len();
        let measured = self.machines.iter().zip(machines).map(|(found, machine)| {
            let source = match found.measured_by {
                Some(rank) => format!("measured by node {rank} with `pdawl cluster measure`"),
                None => format!("the machine file {machine}, which has the nodes' fingerprint"),
            };
            (format!("node.{machine}"), source)
        });
        ClusterFile {
            format: FORMAT.to_owned(),
            name: name.to_owned(),
            title: format!("{count} nodes of {}", machines.join(", ")),
            description: format!(
                "Measured by `pdawl cluster measure` on {}{more}.",
                hosts.join(", ")
            ),
            nodes,
            network: self.network.clone(),
            source: self.source.clone().into_iter().chain(measured).collect(),
        }
    }
}

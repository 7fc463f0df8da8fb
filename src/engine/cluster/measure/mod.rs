//! Measures a cluster: the machines of its nodes, and the network between them.
//!
//! All ranks call [`measure`]. Rank 0 leads (`lead`): it decides which ranks measure their machines
//! and who exchanges messages with whom, orders one thing after the other and hears what
//! ranks measured. Every rank answers the others while it waits (`peer`).
//! Here is what makes a cluster file's figures of what was measured.

mod lead;
mod peer;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use super::ClusterError;
use crate::machine::cluster::{FORMAT, NetworkSpec, NodesSpec};
use crate::machine::{ClusterFile, MachineFile};
use crate::quantity::{Count, Seconds};
use crate::time::Nanos;
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

/// What two ranks measured.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pair {
    /// The median of small messages there and back.
    pub round_trip: Nanos,
    /// The median part of half of a round trip in which neither rank sends or takes a
    /// message.
    pub latency: Nanos,
    /// A small message of many, one after the other.
    pub pace: Nanos,
    /// Bytes a second of a large message.
    pub one_way: f64,
    /// Bytes a second in each direction while both carry a large message.
    pub both_ways: f64,
}

/// A link carries both directions at once if each has at least this part of its bandwidth:
/// the middle between a half, as each has of a link that carries one at a time, and all.
const DUPLEX: f64 = 0.75;

/// All links together carry less than they do alone if the difference is more than the tenth
/// by which measurements vary.
const LIMITED: f64 = 0.9;

/// The network between so many nodes, and the sources of its figures. `all` is what the
/// nodes received, in bytes a second, while each sent to one and received from one. With
/// two nodes it says nothing of a switch.
///
/// A message takes the time of a driver at both ends and the latency between them, as in
/// the simulator, and drivers need the pace of a flood for one. Messages of a flood may take
/// longer than one alone, whose time then has no room for the paces of both drivers. So the
/// latency is no less than what was measured between them.
fn network(nodes: usize, pairs: &[Pair], all: f64) -> (NetworkSpec, BTreeMap<String, String>) {
    let of = |figure: fn(&Pair) -> f64| Spread::of(pairs.iter().map(figure).collect());
    let round_trips = of(|pair| pair.round_trip as f64);
    let latencies = of(|pair| pair.latency as f64);
    let paces = of(|pair| pair.pace as f64);
    let (one_way, both_ways) = (of(|pair| pair.one_way), of(|pair| pair.both_ways));
    let message_ns = paces.median.round() as Nanos;
    let half_trip = (round_trips.median / 2.0).round() as Nanos;
    let full_duplex = both_ways.median >= DUPLEX * one_way.median;
    let links = nodes as f64
        * match full_duplex {
            true => both_ways.median,
            false => one_way.median / 2.0,
        };
    let limited = nodes > 2 && all < LIMITED * links;
    let spec = NetworkSpec {
        bandwidth: one_way.median,
        latency_ns: half_trip
            .saturating_sub(2 * message_ns)
            .max(latencies.median.round() as Nanos),
        message_ns,
        full_duplex,
        switch_bandwidth: limited.then_some(all),
    };
    let rate = |bytes: f64| Count(bytes, "B/s").to_string();
    let time = |ns: f64| Seconds(ns * 1e-9).to_string();
    let count = pairs.len();
    let source = [
        (
            "network.bandwidth",
            format!(
                "measured, the median of large messages between {count} pairs of nodes, {}",
                one_way.range(rate)
            ),
        ),
        (
            "network.latency_ns",
            format!(
                "measured, half of the median round trip of small messages ({}), less the \
                 drivers' time, or what is between their times ({})",
                round_trips.range(time),
                latencies.range(time)
            ),
        ),
        (
            "network.message_ns",
            format!(
                "measured, a message of many that follow one another ({})",
                paces.range(time)
            ),
        ),
        (
            "network.full_duplex",
            format!(
                "measured, each direction while both carry a large message: {}",
                both_ways.range(rate)
            ),
        ),
        (
            "network.switch_bandwidth",
            format!(
                "measured while each node sent to one and received from one: {} in all, and \
                 {} are what links carry alone{}",
                rate(all),
                rate(links),
                if limited {
                    ""
                } else {
                    ", so no limit is assumed"
                }
            ),
        ),
    ];
    let source = source.map(|(key, source)| (key.to_owned(), source));
    (spec, source.into())
}

/// The least, the middle and the greatest of some figures.
struct Spread {
    least: f64,
    median: f64,
    greatest: f64,
}

impl Spread {
    /// Of no figures, all are 0.
    fn of(mut figures: Vec<f64>) -> Self {
        figures.sort_by(f64::total_cmp);
        let at = |index: usize| figures.get(index).copied().unwrap_or(0.0);
        Self {
            least: at(0),
            median: at(figures.len() / 2),
            greatest: at(figures.len().saturating_sub(1)),
        }
    }

    /// From the least to the greatest.
    fn range(&self, shown: impl Fn(f64) -> String) -> String {
        format!("{} to {}", shown(self.least), shown(self.greatest))
    }
}

//! What rank 0 orders, one thing after the other.

use super::figures::{self, Pair};
use super::machines::{Introduced, Kind, kinds};
use super::pairs::{across, pairs};
use super::peer::{Peer, median};
use super::talk::Talk;
use super::{ClusterError, FoundMachine, MeasureOptions, MeasuredCluster, MeasuredNode};
use crate::machine::MachineFile;
use crate::time::Nanos;

/// Floods of a pair. Another process may take the core of a rank in some of them.
const FLOODS: usize = 5;

/// Bytes of the first large message, and how much longer the next one is.
const FIRST_BYTES: u64 = 1 << 20;
const GROWTH: u64 = 4;

/// A large message takes at least this long, unless it is the longest one: a thousand times
/// as long as a message of a slow network on its way.
const LONG: Nanos = 50_000_000;

/// Measures the machines of all ranks, then the network.
pub(super) fn lead(
    peer: &mut Peer,
    known: &dyn Fn(&str) -> Option<MachineFile>,
    options: MeasureOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<MeasuredCluster, ClusterError> {
    let ranks = introduced(peer)?;
    let (kinds, of_rank) = kinds(&ranks, known);
    progress("machines");
    let machines = machines(peer, kinds)?;
    let count = ranks.len();
    let all_pairs = pairs(count);
    let mut measured = Vec::new();
    // All send at once what the slowest pair sent.
    let mut bytes = options.most_bytes;
    for [one, other] in &all_pairs {
        progress(&format!("nodes {one} and {other}"));
        let (pair, sent) = between(peer, [*one, *other], options.most_bytes)?;
        measured.push(pair);
        bytes = bytes.min(sent);
    }
    progress("all nodes at once");
    let all = sending(peer, across(count), bytes)?;
    let rate = all.iter().map(|took| rate(bytes, *took)).sum();
    let (network, source) = figures::network(count, &measured, rate);
    let nodes = ranks.into_iter().zip(of_rank);
    Ok(MeasuredCluster {
        nodes: nodes
            .map(|(rank, machine)| MeasuredNode {
                host: rank.host,
                machine,
            })
            .collect(),
        machines,
        network,
        source,
    })
}

/// What all ranks tell of themselves.
fn introduced(peer: &mut Peer) -> Result<Vec<Introduced>, ClusterError> {
    let mut ranks: Vec<Option<Introduced>> = vec![None; peer.size()];
    while ranks.contains(&None) {
        if let (
            from,
            Talk::Here {
                host,
                fingerprint,
                file,
            },
        ) = peer.receive()?
        {
            ranks[from] = Some(Introduced {
                host,
                fingerprint,
                file,
            });
        }
    }
    Ok(ranks.into_iter().flatten().collect())
}

/// The machine of each kind. Those without a file are measured, all at once.
fn machines(peer: &mut Peer, kinds: Vec<Kind>) -> Result<Vec<FoundMachine>, ClusterError> {
    let mut measured: Vec<(usize, MachineFile)> = Vec::new();
    let without = kinds.iter().filter(|kind| kind.file.is_none());
    let without: Vec<usize> = without.map(|kind| kind.first).collect();
    for rank in &without {
        peer.tell(*rank, &Talk::MeasureMachine)?;
    }
    while measured.len() < without.len() {
        match peer.receive()? {
            (from, Talk::Machine { file }) => measured.push((from, *file)),
            (from, Talk::NoMachine { why }) => {
                let why = format!("the machine of node {from} cannot be measured: {why}");
                return Err(ClusterError::Stopped(why));
            }
            _ => {}
        }
    }
    let found = kinds.into_iter().filter_map(|kind| match kind.file {
        Some(file) => Some(FoundMachine {
            file: *file,
            measured_by: None,
        }),
        None => measured
            .iter()
            .find(|(rank, _)| *rank == kind.first)
            .map(|(rank, file)| FoundMachine {
                file: file.clone(),
                measured_by: Some(*rank),
            }),
    });
    Ok(found.collect())
}

/// Measures two ranks. The result has the bytes of the longest message, too.
fn between(
    peer: &mut Peer,
    [one, other]: [usize; 2],
    most: u64,
) -> Result<(Pair, u64), ClusterError> {
    let (round_trip, latency) = peer.trip(one, other)?;
    let mut paces = Vec::new();
    for _ in 0..FLOODS {
        paces.push(peer.ordered(one, &Talk::Flood { to: other })?);
    }
    let pace = median(paces.into_iter());
    let mut bytes = FIRST_BYTES.min(most);
    let took = loop {
        let took = peer.ordered(one, &Talk::Send { to: other, bytes })?;
        if took >= LONG || bytes >= most {
            break took;
        }
        bytes = (bytes * GROWTH).min(most);
    };
    let both = sending(peer, [(one, other), (other, one)].into_iter(), bytes)?;
    let slower = both.into_iter().max().unwrap_or(0);
    let pair = Pair {
        round_trip,
        latency,
        pace,
        one_way: rate(bytes, took),
        both_ways: rate(bytes, slower),
    };
    Ok((pair, bytes))
}

/// Ranks send to others at the same time. How long each took.
fn sending(
    peer: &mut Peer,
    flows: impl Iterator<Item = (usize, usize)>,
    bytes: u64,
) -> Result<Vec<Nanos>, ClusterError> {
    let mut count = 0;
    for (from, to) in flows {
        peer.tell(from, &Talk::Send { to, bytes })?;
        count += 1;
    }
    (0..count).map(|_| peer.took()).collect()
}

/// Bytes a second.
fn rate(bytes: u64, took: Nanos) -> f64 {
    bytes as f64 / (took.max(1) as f64 * 1e-9)
}

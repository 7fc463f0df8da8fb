//! What rank 0 orders, one thing after the other. All figures of the network come of the same
//! order: to send messages to a rank, and to tell how long it took until that has them.

use super::figures::{self, Pair};
use super::machines::{Introduced, Kind, kinds};
use super::pairs::{across, pairs};
use super::peer::{Peer, Sending, Talk, Took};
use super::{ClusterError, FoundMachine, MeasureOptions, MeasuredCluster, ThisMachine};
use crate::time::Nanos;

/// Round trips of a pair. The median of so many is not disturbed by a few.
const TRIPS: u32 = 102;

/// Messages of a flood, many more than are on the way at once, and floods of a pair: another
/// process may take the core of a rank in some of them.
const FLOOD: u32 = 1000;
const FLOODS: u32 = 6;

/// Bytes of the first large message, and how much longer the next one is.
const FIRST_BYTES: u64 = 1 << 20;
const GROWTH: u64 = 4;

/// A large message takes at least this long, unless it is the longest one: a thousand times
/// as long as a message of a slow network on its way.
const LONG: Nanos = 50_000_000;

/// Measures the machines of all ranks, then the network.
pub(super) fn lead(
    peer: &mut Peer,
    this: ThisMachine,
    options: MeasureOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<MeasuredCluster, ClusterError> {
    let count = peer.size();
    let mut ranks = vec![peer.introduced(&this); count];
    for _ in 1..count {
        let (from, here) = peer.wait(|from, talk| match talk {
            Talk::Here(here) => Some((from, here.clone())),
            _ => None,
        })?;
        ranks[from] = here;
    }
    progress("machines");
    let (machines, of_rank) = machines(peer, this, &ranks)?;
    let all_pairs = pairs(count);
    let mut measured = Vec::new();
    // All send at once what the slowest pair sent.
    let mut bytes = options.most_bytes;
    for pair in all_pairs {
        progress(&format!("nodes {} and {}", pair[0], pair[1]));
        let (pair, sent) = between(peer, pair, options.most_bytes)?;
        measured.push(pair);
        bytes = bytes.min(sent);
    }
    progress("all nodes at once");
    let all = ordered(peer, across(count), large(bytes))?;
    let rate = all.iter().map(|took| rate(bytes, took.all)).sum();
    let (network, source) = figures::network(count, &measured, rate);
    Ok(MeasuredCluster {
        hosts: ranks.into_iter().map(|rank| rank.host).collect(),
        of_rank,
        machines,
        network,
        source,
    })
}

/// The machines of all kinds, and each rank's. Those without a file are measured, all at once.
fn machines(
    peer: &mut Peer,
    this: ThisMachine,
    ranks: &[Introduced],
) -> Result<(Vec<FoundMachine>, Vec<usize>), ClusterError> {
    let (kinds, of_rank) = kinds(ranks, this.known);
    let unknown = kinds.iter().filter(|kind| kind.file.is_none());
    for kind in unknown.filter(|kind| kind.first > 0) {
        peer.tell(kind.first, &Talk::MeasureMachine)?;
    }
    let mut machines = Vec::new();
    for Kind { file, first, .. } in kinds {
        let (file, measured_by) = match (file, first) {
            (Some(file), _) => (Ok(file), None),
            (None, 0) => ((this.measure)().map(Box::new), Some(0)),
            (None, rank) => {
                let measured = peer.wait(|from, talk| match talk {
                    Talk::Machine(machine) if from == rank => Some(machine.clone()),
                    _ => None,
                });
                (measured?, Some(rank))
            }
        };
        let file = *file.map_err(|why| {
            let why = format!("the machine of node {first} cannot be measured: {why}");
            ClusterError::Stopped(why)
        })?;
        machines.push(FoundMachine { file, measured_by });
    }
    Ok((machines, of_rank))
}

/// Measures two ranks. The result has the bytes of the longest message, too.
fn between(
    peer: &mut Peer,
    [one, other]: [usize; 2],
    most: u64,
) -> Result<(Pair, u64), ClusterError> {
    let mut send = |bytes, count, times| {
        let sending = |to| Sending {
            to,
            bytes,
            count,
            times,
        };
        let took = ordered(peer, [(one, other)].into_iter(), sending)?;
        Ok::<Took, ClusterError>(took[0])
    };
    let trip = send(0, 1, TRIPS)?;
    let pace = send(0, FLOOD, FLOODS)?.all / u64::from(FLOOD);
    let mut bytes = FIRST_BYTES.min(most);
    let took = loop {
        let took = send(bytes, 1, 1)?.all;
        if took >= LONG || bytes >= most {
            break took;
        }
        bytes = (bytes * GROWTH).min(most);
    };
    let both = [(one, other), (other, one)];
    let both = ordered(peer, both.into_iter(), large(bytes))?;
    let slower = both.iter().map(|took| took.all).max().unwrap_or(0);
    let pair = Pair {
        round_trip: trip.all,
        latency: trip.between / 2,
        pace,
        one_way: rate(bytes, took),
        both_ways: rate(bytes, slower),
    };
    Ok((pair, bytes))
}

/// One large message.
fn large(bytes: u64) -> impl Fn(usize) -> Sending {
    move |to| Sending {
        to,
        bytes,
        count: 1,
        times: 1,
    }
}

/// Has ranks send to others at the same time. What each took, in any order.
fn ordered(
    peer: &mut Peer,
    flows: impl Iterator<Item = (usize, usize)>,
    sending: impl Fn(usize) -> Sending,
) -> Result<Vec<Took>, ClusterError> {
    let (own, others): (Vec<_>, Vec<_>) = flows.partition(|(from, _)| *from == 0);
    for (from, to) in &others {
        peer.tell(*from, &Talk::Send(sending(*to)))?;
    }
    let mut all = Vec::new();
    for (_, to) in own {
        all.push(peer.send(sending(to))?);
    }
    for _ in others {
        let took = peer.wait(|_, talk| match talk {
            Talk::Took(took) => Some(*took),
            _ => None,
        });
        all.push(took?);
    }
    Ok(all)
}

/// Bytes a second.
fn rate(bytes: u64, took: Nanos) -> f64 {
    bytes as f64 / (took.max(1) as f64 * 1e-9)
}

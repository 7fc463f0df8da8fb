//! What rank 0 orders, one thing after the other. All figures of the network come of the same
//! order: to send messages to a rank, and to tell how long it took until that has them.

use serde::{Deserialize, Serialize};

use super::peer::{Peer, Sending, Talk, Took};
use super::{ClusterError, FoundMachine, MeasureOptions, MeasuredCluster, Pair, ThisMachine};
use crate::machine::MachineFile;
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
    let (network, source) = super::network(count, &measured, rate);
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

/// What a rank tells of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Introduced {
    pub host: String,
    pub fingerprint: String,
    /// The file that its user has of the machine.
    pub file: Option<Box<MachineFile>>,
}

/// Ranks whose machines have the same fingerprint.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kind {
    pub fingerprint: String,
    /// Of one of them. Without one, [`Self::first`] measures.
    pub file: Option<Box<MachineFile>>,
    /// The first rank of them.
    pub first: usize,
}

/// The kinds of machines in the order of their first ranks, and each rank's kind. A file
/// that rank 0 knows comes before those of other ranks.
fn kinds(
    ranks: &[Introduced],
    known: impl Fn(&str) -> Option<MachineFile>,
) -> (Vec<Kind>, Vec<usize>) {
    let mut kinds: Vec<Kind> = Vec::new();
    let mut of_rank = Vec::new();
    for (first, rank) in ranks.iter().enumerate() {
        let same = |kind: &Kind| kind.fingerprint == rank.fingerprint;
        let place = kinds.iter().position(same).unwrap_or_else(|| {
            kinds.push(Kind {
                fingerprint: rank.fingerprint.clone(),
                file: known(&rank.fingerprint).map(Box::new),
                first,
            });
            kinds.len() - 1
        });
        let kind = &mut kinds[place];
        if kind.file.is_none() {
            kind.file.clone_from(&rank.file);
        }
        of_rank.push(place);
    }
    (kinds, of_rank)
}

/// Pairs of ranks to measure: all if they are at most twice as many as the ranks, otherwise
/// each rank with the next one and with one half of the ranks away, so that the time of a
/// measurement grows with the number of ranks, and each rank is in four pairs.
fn pairs(ranks: usize) -> Vec<[usize; 2]> {
    let all = |first: usize| (first + 1..ranks).map(move |second| [first, second]);
    if ranks * (ranks - 1) / 2 <= 2 * ranks {
        return (0..ranks).flat_map(all).collect();
    }
    let with = |distance: usize| {
        (0..ranks).map(move |rank| {
            let other = (rank + distance) % ranks;
            [rank.min(other), rank.max(other)]
        })
    };
    let mut pairs: Vec<[usize; 2]> = with(1).chain(with(ranks / 2)).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// To which rank each sends when all send at once: half of the ranks away. Where ranks of
/// equal racks have consecutive numbers, all data cross the middle of the network.
fn across(ranks: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..ranks).map(move |rank| (rank, (rank + ranks / 2) % ranks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::MachineStore;

    fn file(name: &str) -> MachineFile {
        let store = MachineStore::at("/nonexistent");
        let mut file = store.find("k40").unwrap();
        file.name = name.to_owned();
        file
    }

    #[test]
    fn equal_machines_are_measured_once_and_files_are_used() {
        let rank = |fingerprint: &str, own: Option<&str>| Introduced {
            host: "host".to_owned(),
            fingerprint: fingerprint.to_owned(),
            file: own.map(|name| Box::new(file(name))),
        };
        let ranks = [
            rank("a", None),
            rank("b", None),
            rank("c", Some("of-2")),
            rank("b", Some("of-3")),
            rank("a", None),
            rank("c", Some("of-5")),
        ];
        let known = |fingerprint: &str| (fingerprint == "c").then(|| file("of-0"));
        let (kinds, of_rank) = kinds(&ranks, known);
        assert_eq!(of_rank, [0, 1, 2, 1, 0, 2]);
        let names: Vec<_> = kinds
            .iter()
            .map(|kind| {
                (
                    kind.first,
                    kind.file.as_ref().map(|file| file.name.as_str()),
                )
            })
            .collect();
        assert_eq!(names, [(0, None), (1, Some("of-3")), (2, Some("of-0"))]);
    }

    #[test]
    fn every_rank_is_in_a_pair_and_no_pair_is_twice() {
        for ranks in 2..40 {
            let pairs = pairs(ranks);
            for rank in 0..ranks {
                assert!(pairs.iter().any(|pair| pair.contains(&rank)), "{rank}");
            }
            let mut unlike = pairs.clone();
            unlike.sort_unstable();
            unlike.dedup();
            assert_eq!(unlike.len(), pairs.len(), "{ranks}");
            assert!(pairs.len() <= 2 * ranks);
            assert!(pairs.iter().all(|[a, b]| a < b && *b < ranks));
            if ranks <= 5 {
                assert_eq!(pairs.len(), ranks * (ranks - 1) / 2);
            }
        }
    }

    #[test]
    fn when_all_send_each_receives_from_another() {
        for ranks in 2..20 {
            let mut receivers: Vec<usize> = across(ranks).map(|(_, to)| to).collect();
            assert!(across(ranks).all(|(from, to)| from != to));
            receivers.sort_unstable();
            assert_eq!(receivers, (0..ranks).collect::<Vec<_>>());
        }
    }
}

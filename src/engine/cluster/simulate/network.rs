//! How transfers between nodes share links.
//!
//! A transfer uses its sender's link out, its receiver's link in, and the switch if that
//! carries less than its links. Rates are max-min fair: the link with the least bandwidth
//! for each of its transfers is full first, and so on. They are computed again where
//! transfers touch, that is in the set of transfers connected by links to the one that
//! begins or ends.

use crate::time::Nanos;

/// Transfers of a connected set beyond which only those on the same links as the changed
/// one are considered, each with an equal part of the links' bandwidth. That is exact
/// where a link limits all of its transfers, and too low where some are limited elsewhere.
/// The exact rates of a thousand nodes that all send to each other would take longer than
/// the run that is simulated.
const EXACT: usize = 256;

/// Beyond [`EXACT`], a rate stays as it is until it is wrong by this part: links with
/// thousands of transfers would otherwise change all of them with each one that begins.
const INEXACT: f64 = 0.01;

#[derive(Clone, Debug)]
struct Link {
    bandwidth: f64,
    flows: Vec<usize>,
    /// Of all transfers that have begun.
    bytes: u64,
}

#[derive(Clone, Debug)]
struct Flow {
    links: Vec<usize>,
    left: f64,
    rate: f64,
    /// When `left` was right.
    since: Nanos,
    /// Counts the changes of its rate, so that an earlier end is known to be wrong.
    version: u32,
}

/// When a transfer ends, unless its rate changes before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct End {
    pub flow: usize,
    pub version: u32,
    pub at: Nanos,
}

/// Links, and the transfers that share them.
#[derive(Clone, Debug, Default)]
pub struct Network {
    links: Vec<Link>,
    flows: Vec<Option<Flow>>,
    free: Vec<usize>,
    versions: u32,
    scratch: Scratch,
}

/// What is used again and again while rates are computed.
#[derive(Clone, Debug, Default)]
struct Scratch {
    flows: Met,
    links: Met,
    fixed: Met,
    /// By link: its place among those that are regarded.
    places: Vec<usize>,
}

/// Numbers that were met in this round. A new round forgets all of them at once.
#[derive(Clone, Debug, Default)]
struct Met {
    round: u64,
    /// By number: the last round in which it was met.
    last: Vec<u64>,
}

impl Met {
    /// Begins a round with numbers below `count`.
    fn begin(&mut self, count: usize) {
        self.round += 1;
        self.last.resize(count.max(self.last.len()), 0);
    }

    /// Whether a number is met for the first time.
    fn insert(&mut self, number: usize) -> bool {
        std::mem::replace(&mut self.last[number], self.round) != self.round
    }
}

impl Network {
    /// Adds a link of so many bytes a second.
    pub fn link(&mut self, bandwidth: f64) -> usize {
        self.links.push(Link {
            bandwidth,
            flows: Vec::new(),
            bytes: 0,
        });
        self.links.len() - 1
    }

    /// Seconds that a link needs for all bytes of the transfers that have begun on it.
    pub fn seconds(&self, link: usize) -> f64 {
        self.links[link].bytes as f64 / self.links[link].bandwidth
    }

    /// Begins a transfer over links. The result is its number; `ends` gets the new ends of
    /// all transfers whose rates have changed.
    pub fn begin(
        &mut self,
        links: Vec<usize>,
        bytes: u64,
        now: Nanos,
        ends: &mut Vec<End>,
    ) -> usize {
        let flow = Flow {
            links,
            left: bytes as f64,
            rate: 0.0,
            since: now,
            version: 0,
        };
        let number = self.free.pop().unwrap_or(self.flows.len());
        for &link in &flow.links {
            self.links[link].flows.push(number);
            self.links[link].bytes += bytes;
        }
        let links = flow.links.clone();
        match self.flows.get_mut(number) {
            Some(place) => *place = Some(flow),
            None => self.flows.push(Some(flow)),
        }
        self.share(&links, now, ends);
        number
    }

    /// Ends a transfer, if this is its end. The result is whether it is.
    pub fn end(&mut self, end: End, ends: &mut Vec<End>) -> bool {
        let current = self.flows[end.flow].as_ref();
        if current.is_none_or(|flow| flow.version != end.version) {
            return false;
        }
        let Some(flow) = self.flows[end.flow].take() else {
            return false;
        };
        self.free.push(end.flow);
        for &link in &flow.links {
            self.links[link].flows.retain(|&other| other != end.flow);
        }
        self.share(&flow.links, end.at, ends);
        true
    }

    /// The transfers connected with links, or `None` if there are too many, and their
    /// links.
    fn connected(&self, links: &[usize], met: &mut Scratch) -> Option<(Vec<usize>, Vec<usize>)> {
        if links
            .iter()
            .any(|link| self.links[*link].flows.len() > EXACT)
        {
            return None;
        }
        let mut links: Vec<usize> = links.to_vec();
        let mut flows: Vec<usize> = Vec::new();
        met.flows.begin(self.flows.len());
        met.links.begin(self.links.len());
        for link in &links {
            met.links.insert(*link);
        }
        let mut next = 0;
        while next < links.len() {
            for &flow in &self.links[links[next]].flows {
                if !met.flows.insert(flow) {
                    continue;
                }
                flows.push(flow);
                if flows.len() > EXACT {
                    return None;
                }
                let others = self.flows[flow].iter().flat_map(|flow| &flow.links);
                links.extend(others.filter(|&&link| met.links.insert(link)));
            }
            next += 1;
        }
        Some((flows, links))
    }

    fn share(&mut self, links: &[usize], now: Nanos, ends: &mut Vec<End>) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let (rates, allowed) = match self.connected(links, &mut scratch) {
            Some((flows, links)) => (self.fair(&flows, &links, &mut scratch), 0.0),
            None => (self.equal(links), INEXACT),
        };
        self.scratch = scratch;
        for (number, rate) in rates {
            let Some(flow) = &mut self.flows[number] else {
                continue;
            };
            if (flow.rate - rate).abs() <= allowed * flow.rate {
                continue;
            }
            flow.left -= flow.rate * (now - flow.since) as f64 * 1e-9;
            flow.since = now;
            flow.rate = rate;
            self.versions = self.versions.wrapping_add(1);
            flow.version = self.versions;
            let seconds = flow.left.max(0.0) / rate;
            ends.push(End {
                flow: number,
                version: flow.version,
                at: now + (seconds * 1e9).ceil() as Nanos,
            });
        }
    }

    /// Max-min fair rates of connected transfers.
    fn fair(&self, flows: &[usize], links: &[usize], scratch: &mut Scratch) -> Vec<(usize, f64)> {
        let Scratch { fixed, places, .. } = scratch;
        fixed.begin(self.flows.len());
        places.resize(self.links.len(), 0);
        let mut left: Vec<(usize, f64, usize)> = Vec::new();
        for &link in links {
            let link_of = &self.links[link];
            if !link_of.flows.is_empty() {
                places[link] = left.len();
                left.push((link, link_of.bandwidth, link_of.flows.len()));
            }
        }
        let mut rates = Vec::with_capacity(flows.len());
        while rates.len() < flows.len() {
            let open = left.iter().filter(|(_, _, count)| *count > 0);
            let fullest = open.min_by(|a, b| {
                (a.1 / a.2 as f64)
                    .total_cmp(&(b.1 / b.2 as f64))
                    .then(a.0.cmp(&b.0))
            });
            let Some(&(link, bandwidth, count)) = fullest else {
                break;
            };
            let rate = bandwidth / count as f64;
            for &number in &self.links[link].flows {
                if !fixed.insert(number) {
                    continue;
                }
                rates.push((number, rate));
                let Some(flow) = &self.flows[number] else {
                    continue;
                };
                for link in &flow.links {
                    let (_, bandwidth, count) = &mut left[places[*link]];
                    *bandwidth = (*bandwidth - rate).max(0.0);
                    *count -= 1;
                }
            }
        }
        rates
    }

    /// Equal parts for all transfers on links.
    fn equal(&self, links: &[usize]) -> Vec<(usize, f64)> {
        // A transfer on two of the links is here twice, with the same rate.
        let numbers = links.iter().flat_map(|link| &self.links[*link].flows);
        let part = |&link: &usize| self.links[link].bandwidth / self.links[link].flows.len() as f64;
        let rate = |&number: &usize| {
            let flow = self.flows[number].as_ref()?;
            Some((
                number,
                flow.links.iter().map(part).fold(f64::INFINITY, f64::min),
            ))
        };
        numbers.filter_map(rate).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(ends: &[End], flow: usize) -> Nanos {
        ends.iter().rev().find(|end| end.flow == flow).unwrap().at
    }

    #[test]
    fn what_one_link_cannot_use_another_transfer_gets() {
        let mut network = Network::default();
        let links: Vec<usize> = [100.0, 100.0, 30.0, 100.0]
            .map(|b| network.link(b))
            .to_vec();
        let mut ends = Vec::new();
        // Two leave over link 0; one of them arrives over the slow link 2.
        let slow = network.begin(vec![links[0], links[2]], 300, 0, &mut ends);
        let fast = network.begin(vec![links[0], links[3]], 700, 0, &mut ends);
        assert_eq!(
            (last(&ends, slow), last(&ends, fast)),
            (10_000_000_000, 10_000_000_000)
        );
        let end = *ends.iter().rev().find(|end| end.flow == fast).unwrap();
        assert!(network.end(end, &mut ends));
        assert!(!network.end(end, &mut ends), "it has ended");
    }

    #[test]
    fn a_transfer_that_ends_leaves_its_bandwidth() {
        let mut network = Network::default();
        let (up, down) = (network.link(100.0), network.link(100.0));
        let mut ends = Vec::new();
        let short = network.begin(vec![up, down], 100, 0, &mut ends);
        let long = network.begin(vec![up, down], 200, 0, &mut ends);
        assert_eq!(last(&ends, short), 2_000_000_000);
        let end = *ends.iter().rev().find(|end| end.flow == short).unwrap();
        assert!(network.end(end, &mut ends));
        assert_eq!(last(&ends, long), 3_000_000_000);
    }
}

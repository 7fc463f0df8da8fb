//! Draws the columns of web graphs, whose pages are sorted by host (links within the host, often
//! to consecutive pages, and links to popular hosts), and of circuits.

use crate::matrix::generate::fill::{Random, distinct, distinct_beside, mix, uniform};

/// The probability that a link leads to the page after that of the previous link.
const RUN: f64 = 0.6;
/// The exponent of the distribution of a host's pages, and the fewest pages.
const HOSTS: (f64, f64) = (1.1, 10.0);
/// The stream of random numbers that hosts are drawn from.
const STREAM: u64 = u64::MAX;
/// The exponent of the popularity of hosts.
const POPULARITY: i32 = 3;

/// A web's pages.
pub struct Web {
    pages: u32,
    /// The first page of each host.
    hosts: Vec<u32>,
    /// Probability that a link stays in its host.
    local: f64,
}

impl Web {
    pub fn new(pages: u32, local: f64, seed: u64) -> Self {
        let mut random = Random::of(seed, STREAM);
        let (exponent, fewest) = HOSTS;
        let largest = f64::from(pages / 20).max(fewest);
        let (mut hosts, mut first) = (Vec::new(), 0);
        while first < pages {
            hosts.push(first);
            let size = (fewest * random.unit().powf(-1.0 / exponent)).min(largest);
            first = first.saturating_add(size as u32);
        }
        Self {
            pages,
            hosts,
            local,
        }
    }

    /// Writes the columns of a row.
    pub fn row(&self, row: u32, random: &mut Random, out: &mut [u32]) {
        let host = self.host_of(row);
        let mut last = None;
        distinct(out, self.pages, || {
            let page = match last.map(|page: u32| page + 1) {
                Some(next) if next < self.pages && random.chance(RUN) => next,
                _ if random.chance(self.local) => self.nearby(row, host, random),
                _ => self.popular(random),
            };
            last = Some(page);
            page
        });
    }

    fn host_of(&self, page: u32) -> usize {
        self.hosts.partition_point(|first| *first <= page) - 1
    }

    /// The range of a host's pages.
    fn bounds(&self, host: usize) -> (u32, u32) {
        let end = self.hosts.get(host + 1).copied().unwrap_or(self.pages);
        (self.hosts[host], end)
    }

    /// A page of the same host; near pages are likelier.
    fn nearby(&self, page: u32, host: usize, random: &mut Random) -> u32 {
        let (first, end) = self.bounds(host);
        let before = random.chance(0.5);
        let room = if before { page - first } else { end - 1 - page };
        let distance = f64::from(room + 1).powf(random.unit()) as u32;
        match before {
            true => page - distance.min(room),
            false => page + distance.min(room),
        }
    }

    /// One of the first pages of a host; few hosts have most of these links.
    fn popular(&self, random: &mut Random) -> u32 {
        let hosts = self.hosts.len() as u64;
        let rank = (random.unit().powi(POPULARITY) * hosts as f64) as u64;
        // Popular hosts are scattered over the order.
        let (first, end) = self.bounds((mix(rank) % hosts) as usize);
        let pages = f64::from(end - first);
        first + ((random.unit().powi(POPULARITY) * pages) as u32).min(end - first - 1)
    }
}

// Draws the columns of circuits: the diagonal, neighbours in the order of the netlist,
// and the few nets that connect many nodes.

/// The fraction of all nodes from which on a net counts as dense.
const DENSE: f64 = 0.01;
/// The fraction of neighbours that are near. Others are up to half the matrix away,
/// with a probability that falls with the distance.
const NEAR: f64 = 0.8;
/// Mean distance of near neighbours in a short row.
const NEAR_DISTANCE: f64 = 4.0;

/// A circuit's nodes.
pub struct Circuit {
    nodes: u32,
    /// Rows of dense nets, and the fraction of all nodes that each connects.
    dense: Vec<(u32, f64)>,
}

impl Circuit {
    /// The nodes of a matrix with these row starts.
    pub fn new(starts: &[u64]) -> Self {
        let nodes = (starts.len() - 1) as u32;
        let reached = |bounds: &[u64]| (bounds[1] - bounds[0]) as f64 / f64::from(nodes);
        let dense = (0..).zip(starts.windows(2).map(reached));
        Self {
            nodes,
            dense: dense.filter(|(_, share)| *share > DENSE).collect(),
        }
    }

    /// Writes the columns of a row.
    pub fn row(&self, row: u32, random: &mut Random, out: &mut [u32]) {
        if out.len() as f64 > DENSE * f64::from(self.nodes) {
            return uniform(out, self.nodes, random);
        }
        let mut given = 0;
        let mut give = |column: u32| {
            if let Some(slot) = out.get_mut(given) {
                *slot = column;
                given += 1;
            }
        };
        give(row);
        for (net, share) in &self.dense {
            // The matrix is about symmetric: a net's column is as full as its row.
            if *net != row && random.chance(*share) {
                give(*net);
            }
        }
        let near = NEAR_DISTANCE.max(out.len() as f64);
        distinct_beside(out, given, self.nodes, || self.neighbour(row, near, random));
    }

    fn neighbour(&self, row: u32, near: f64, random: &mut Random) -> u32 {
        let distance = match random.chance(NEAR) {
            true => 1.0 - near * random.unit().ln(),
            false => (random.unit() * (f64::from(self.nodes) / 2.0).max(1.0).ln()).exp(),
        };
        let distance = distance as i64;
        let (row, last) = (i64::from(row), i64::from(self.nodes) - 1);
        let sign = if random.chance(0.5) { 1 } else { -1 };
        // A neighbour beyond the edge is mirrored to the other side of the row.
        let column = match row + sign * distance {
            inside if (0..=last).contains(&inside) => inside,
            _ => row - sign * distance,
        };
        column.clamp(0, last) as u32
    }
}

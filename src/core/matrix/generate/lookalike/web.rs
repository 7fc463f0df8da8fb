//! Draws the columns of web graphs, whose pages are sorted by host: links within the
//! host, often to consecutive pages, and links to popular hosts.

use crate::matrix::generate::columns::distinct;
use crate::matrix::generate::random::{Random, mix};

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

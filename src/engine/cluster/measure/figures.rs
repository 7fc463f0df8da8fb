//! A cluster file's figures of the network, from what ranks measured.

use std::collections::BTreeMap;

use crate::machine::cluster::NetworkSpec;
use crate::quantity::{Count, Seconds};
use crate::time::Nanos;

/// What two ranks measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
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
pub(super) fn network(
    nodes: usize,
    pairs: &[Pair],
    all: f64,
) -> (NetworkSpec, BTreeMap<String, String>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(one_way: f64, both_ways: f64) -> Pair {
        Pair {
            round_trip: 60_000,
            latency: 8_000,
            pace: 5_000,
            one_way,
            both_ways,
        }
    }

    #[test]
    fn a_message_takes_both_drivers_and_no_less_than_the_measured_latency() {
        let (spec, source) = network(2, &[pair(1e9, 1e9)], 2e9);
        assert_eq!((spec.latency_ns, spec.message_ns), (20_000, 5_000));
        assert_eq!(spec.bandwidth, 1e9);
        assert_eq!(source.len(), 5);
        let slow = Pair {
            pace: 50_000,
            ..pair(1e9, 1e9)
        };
        assert_eq!(network(2, &[slow], 2e9).0.latency_ns, 8_000);
    }

    #[test]
    fn a_link_is_full_duplex_if_directions_do_not_share_it() {
        for (both, full) in [(1e9, true), (0.8e9, true), (0.6e9, false), (0.5e9, false)] {
            let (spec, _) = network(2, &[pair(1e9, both)], 2.0 * both);
            assert_eq!(spec.full_duplex, full, "{both}");
        }
    }

    #[test]
    fn a_switch_limits_if_all_links_together_carry_less() {
        let switch = |nodes, both, all| network(nodes, &[pair(1e9, both)], all).0.switch_bandwidth;
        assert_eq!(switch(4, 1e9, 3.9e9), None);
        assert_eq!(switch(4, 1e9, 2e9), Some(2e9));
        assert_eq!(switch(4, 0.5e9, 1.9e9), None, "half duplex");
        assert_eq!(switch(2, 1e9, 0.1e9), None, "two nodes are one pair");
    }

    #[test]
    fn the_median_counts_and_the_range_is_reported() {
        let pairs = [pair(1e9, 1e9), pair(4e9, 4e9), pair(2e9, 2e9)];
        let (spec, source) = network(3, &pairs, 6e9);
        assert_eq!(spec.bandwidth, 2e9);
        let text = &source["network.bandwidth"];
        assert!(
            text.contains("3 pairs") && text.contains("1.00 GB/s to 4.00 GB/s"),
            "{text}"
        );
    }
}

//! The division of a workload's units among the nodes of a cluster: a run of neighbouring
//! units for each node, in the nodes' order. Within a node, a [`Balancer`](super::Balancer)
//! divides them among the devices.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::largest_remainder;
use super::parts::fewest;
use crate::time::Nanos;

/// What a node has measured of its units since it was asked last.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Seconds of a step, without those in which it waited for others.
    #[serde(with = "crate::exact")]
    pub seconds: f64,
    /// Seconds that it took to begin with its units.
    #[serde(with = "crate::exact")]
    pub set_up: f64,
}

impl Pace {
    /// Of steps that took these times, of which there is one: the median, as a step in which
    /// a node was disturbed, or its first one, says little of the next ones.
    pub fn of(steps: &[Nanos], set_up: f64) -> Self {
        let mut steps = steps.to_vec();
        steps.sort_unstable();
        let usual = steps.get(steps.len().saturating_sub(1) / 2);
        Self {
            seconds: usual.copied().unwrap_or_default() as f64 / 1e9,
            set_up,
        }
    }
}

/// Divides units in proportion to speeds. Every node whose speed is above 0 gets a unit, if
/// there are as many.
pub fn divided(units: u64, speeds: &[f64]) -> Vec<Range<u64>> {
    let mut counts = largest_remainder(units, speeds);
    for node in 0..counts.len() {
        let most = (0..counts.len()).max_by_key(|other| counts[*other]);
        let giver = most.filter(|other| counts[*other] > 1);
        if let Some(giver) = giver.filter(|_| counts[node] == 0 && speeds[node] > 0.0) {
            counts[giver] -= 1;
            counts[node] += 1;
        }
    }
    let mut begin = 0;
    let ranges = counts.into_iter().map(|count| {
        let range = begin..begin + count;
        begin = range.end;
        range
    });
    ranges.collect()
}

/// The speeds of the nodes that take part, in steps a second, and 0 for the others: of the fastest
/// ones as many as a step is expected to be fastest with, and its seconds with them and with all.
/// `exchanging` are the seconds in which so many nodes get what they read of each other's results.
pub fn taking_part(
    speeds: &[f64],
    exchanging: impl Fn(usize) -> f64,
) -> Option<(Vec<f64>, [f64; 2])> {
    let mut fastest: Vec<usize> = (0..speeds.len()).filter(|n| speeds[*n] > 0.0).collect();
    fastest.sort_by(|one, other| speeds[*other].total_cmp(&speeds[*one]));
    let seconds = |count: usize| {
        let speed: f64 = fastest[..count].iter().map(|node| speeds[*node]).sum();
        1.0 / speed + exchanging(count)
    };
    let count = 1 + fewest((1..=fastest.len()).map(|count| (count, seconds(count))))?;
    let mut part = vec![0.0; speeds.len()];
    for node in &fastest[..count] {
        part[*node] = speeds[*node];
    }
    Some((part, [seconds(count), seconds(fastest.len())]))
}

/// Whether nodes compare their paces after so many steps: after 4, 16, 64, and so on. In the
/// first steps a balancer moves units within a node. What a comparison costs is little beside
/// the steps, and one that is wrong, as a node was disturbed, is put right after three times as
/// many steps.
pub fn is_compared(steps: u64) -> bool {
    steps > 1 && steps.is_power_of_two() && steps.trailing_zeros().is_multiple_of(2)
}

/// Another division with which the steps that are left end sooner, what it takes to begin
/// with it included; none if there is none. A node without a pace has no units.
pub fn redivided(
    ranges: &[Range<u64>],
    paces: &[Option<Pace>],
    steps_left: u64,
) -> Option<Vec<Range<u64>>> {
    let count = |range: &Range<u64>| range.end - range.start;
    let both = || ranges.iter().zip(paces);
    let speed = |(range, pace): (&Range<u64>, &Option<Pace>)| {
        let seconds = pace.map(|pace| pace.seconds).filter(|s| *s > 0.0);
        seconds.map_or(0.0, |seconds| count(range) as f64 / seconds)
    };
    let speeds: Vec<f64> = both().map(speed).collect();
    let other = divided(ranges.iter().map(count).sum(), &speeds);
    // A node without units has nothing that its speed could be known by.
    if both().any(|(range, pace)| range.is_empty() == pace.is_some())
        || ranges
            .iter()
            .zip(&other)
            .any(|(old, new)| old.is_empty() != new.is_empty())
    {
        return None;
    }
    let longest = |seconds: &mut dyn Iterator<Item = f64>| seconds.fold(0.0, f64::max);
    let now = longest(&mut paces.iter().flatten().map(|pace| pace.seconds));
    let then = (other.iter().zip(&speeds)).filter(|(_, speed)| **speed > 0.0);
    let then = longest(&mut then.map(|(range, speed)| count(range) as f64 / speed));
    let set_up = longest(&mut paces.iter().flatten().map(|pace| pace.set_up));
    let gain = (now - then) * steps_left as f64;
    (gain > set_up).then_some(other)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pace(seconds: f64) -> Option<Pace> {
        Some(Pace {
            seconds,
            set_up: 1.0,
        })
    }

    #[test]
    fn nodes_get_units_by_their_speeds() {
        assert_eq!(divided(10, &[1.0, 0.0, 4.0]), [0..2, 2..2, 2..10]);
        assert_eq!(divided(10, &[1.0, 1e-9, 1.0]), [0..5, 5..6, 6..10]);
        assert_eq!(
            divided(2, &[1.0, 1.0, 1.0])
                .iter()
                .filter(|r| !r.is_empty())
                .count(),
            2
        );
        assert_eq!(divided(5, &[0.0, 0.0]), [0..0, 0..0]);
    }

    #[test]
    fn nodes_take_part_that_gain_more_than_they_exchange() {
        let part = |speeds: &[f64], each: f64| {
            let exchanging = |nodes: usize| each * (nodes - 1) as f64;
            taking_part(speeds, exchanging)
        };
        let four = [1.0; 4];
        assert_eq!(part(&four, 0.0), Some((vec![1.0; 4], [0.25; 2])));
        // 1, 0.6, 0.53, 0.55 seconds.
        let fewer = vec![1.0, 1.0, 1.0, 0.0];
        let (which, [with, all]) = part(&four, 0.1).unwrap();
        assert_eq!(
            (which, (100.0 * with) as u32, (100.0 * all) as u32),
            (fewer, 53, 55)
        );
        let one = Some((vec![0.0, 2.0, 0.0], [0.5, 2.25]));
        assert_eq!(part(&[1.0, 2.0, 1.0], 1.0), one);
        assert_eq!(part(&[0.0, 0.0], 1.0), None);
    }

    #[test]
    fn paces_are_compared_ever_more_seldom() {
        let steps: Vec<u64> = (0..600).filter(|steps| is_compared(*steps)).collect();
        assert_eq!(steps, [4, 16, 64, 256]);
    }

    #[test]
    fn one_step_that_took_long_does_not_count() {
        let seconds = |steps: &[Nanos]| Pace::of(steps, 0.0).seconds;
        assert_eq!(seconds(&[90_000_000_000, 2_000_000_000]), 2.0);
        assert_eq!(
            seconds(&[2_000_000_000, 3_000_000_000, 90_000_000_000]),
            3.0
        );
        assert_eq!(seconds(&[2_000_000_000]), 2.0);
    }

    #[test]
    fn another_division_must_pay() {
        let ranges = [0..50, 50..100];
        let paces = [pace(3.0), pace(1.0)];
        assert_eq!(redivided(&ranges, &paces, 10), Some(vec![0..25, 25..100]));
        // A step gets shorter by 1.5 seconds, and to begin takes 1.
        assert_eq!(redivided(&ranges, &paces, 0), None);
        assert_eq!(redivided(&ranges, &[pace(1.0), pace(1.001)], 100), None);
    }

    #[test]
    fn a_node_without_units_stays_without() {
        let ranges = [0..50, 50..50, 50..100];
        let paces = [pace(3.0), None, pace(1.0)];
        let other = redivided(&ranges, &paces, 10);
        assert_eq!(other, Some(vec![0..25, 25..25, 25..100]));
    }

    proptest! {
        #[test]
        fn every_unit_is_at_one_node(
            units in 0u64..500,
            speeds in prop::collection::vec(0.0f64..9.0, 1..9),
        ) {
            prop_assume!(speeds.iter().any(|speed| *speed > 0.0));
            let ranges = divided(units, &speeds);
            let mut begin = 0;
            for (range, speed) in ranges.iter().zip(&speeds) {
                prop_assert_eq!(range.start, begin);
                prop_assert!(range.is_empty() || *speed > 0.0);
                begin = range.end;
            }
            prop_assert_eq!(begin, units);
            let some = speeds.iter().filter(|speed| **speed > 0.0).count() as u64;
            let with = ranges.iter().filter(|range| !range.is_empty()).count() as u64;
            prop_assert_eq!(with, some.min(units));
        }
    }
}

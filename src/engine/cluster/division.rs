//! Which devices of a node compute a subtask together, and which of its units each computes.

use std::ops::Range;

/// A division pays where it takes at most so much of the time that the best device needs alone.
const PAYS: f64 = 0.8;

/// Seconds that a part takes beside computing and copies, for its launch and its end.
const PART: f64 = 50e-6;

/// What a device is expected to take for a subtask by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    /// Seconds for all units; a part takes its fraction of them.
    pub units: f64,
    /// Seconds for any part, however small, as for copies of what all parts read.
    pub part: f64,
}

impl Pace {
    fn seconds(self, fraction: f64) -> f64 {
        self.part + self.units * fraction
    }
}

/// By device that takes part: its units of so many. `None` if a division does not pay. `work` is
/// that of all subtasks of the node that have not ended, in units of this one's, which is one of
/// them: several of them keep the devices busy without a division.
pub(super) fn division(
    paces: &[Option<Pace>],
    work: f64,
    units: u64,
) -> Option<Vec<(usize, Range<u64>)>> {
    let able = || paces.iter().flatten();
    if units < 2 || able().count() < 2 {
        return None;
    }
    let best = able().map(|pace| pace.seconds(1.0));
    let best = best.min_by(f64::total_cmp)?;
    let end = common_end(paces);
    let mut parts = Vec::new();
    let (mut begin, mut sum) = (0, 0.0);
    for (device, pace) in paces.iter().enumerate() {
        sum += pace.map_or(0.0, |pace| fraction(pace, end));
        let cut = ((units as f64 * sum).round() as u64).clamp(begin, units);
        if cut > begin {
            parts.push((device, begin..cut));
        }
        begin = cut;
    }
    // Roundings of fractions must not leave units out.
    parts.last_mut()?.1.end = units;
    let seconds = |(device, own): &(usize, Range<u64>)| {
        let pace = paces[*device].unwrap_or(Pace {
            units: 0.0,
            part: 0.0,
        });
        pace.seconds((own.end - own.start) as f64 / units as f64)
    };
    let longest = parts.iter().map(seconds).max_by(f64::total_cmp)?;
    let pays = work.max(1.0) * (longest + PART) <= PAYS * best;
    (pays && parts.len() > 1).then_some(parts)
}

/// What a device computes until `end`.
fn fraction(pace: Pace, end: f64) -> f64 {
    (end - pace.part).max(0.0) / pace.units.max(1e-12)
}

/// When devices end that begin together and end together.
fn common_end(paces: &[Option<Pace>]) -> f64 {
    let mut able: Vec<Pace> = paces.iter().copied().flatten().collect();
    able.sort_by(|one, other| one.part.total_cmp(&other.part));
    // Of the devices so far, the sum of fractions at `end` is `end * rate - before`.
    let (mut rate, mut before, mut end) = (0.0, 0.0, f64::INFINITY);
    for pace in able {
        if pace.part >= end {
            break;
        }
        let own = 1.0 / pace.units.max(1e-12);
        rate += own;
        before += pace.part * own;
        end = (1.0 + before) / rate;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(units: f64) -> Option<Pace> {
        Some(Pace { units, part: 0.0 })
    }

    #[test]
    fn devices_get_units_in_proportion_to_their_speeds() {
        let parts = division(&[pace(3.0), None, pace(1.5), pace(3.0)], 1.0, 40);
        assert_eq!(parts, Some(vec![(0, 0..10), (2, 10..30), (3, 30..40)]));
    }

    #[test]
    fn all_units_are_given_whatever_the_speeds() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut divided = 0;
        for _ in 0..1000 {
            let one = |random: &mut fastrand::Rng| {
                random.bool().then(|| Pace {
                    units: random.f64(),
                    part: random.f64() * 0.2,
                })
            };
            let paces: Vec<_> = (0..random.usize(..5)).map(|_| one(&mut random)).collect();
            let units = random.u64(..70);
            let Some(parts) = division(&paces, 1.0, units) else {
                continue;
            };
            divided += 1;
            let mut end = 0;
            for (device, own) in parts {
                assert!(paces[device].is_some());
                assert!(own.start == end && own.end > end);
                end = own.end;
            }
            assert_eq!(end, units);
        }
        assert!(divided > 50, "{divided}");
    }

    #[test]
    fn a_division_that_gains_little_is_none() {
        // A tenth as fast: at best 0.91 of the time.
        assert_eq!(division(&[pace(1.0), pace(10.0)], 1.0, 64), None);
        // What all parts read is copied in half of the time.
        let copies = Some(Pace {
            units: 1.0,
            part: 0.7,
        });
        assert_eq!(division(&[pace(1.0), copies], 1.0, 64), None);
        // The launches take longer than computing.
        assert_eq!(division(&[pace(60e-6), pace(60e-6)], 1.0, 64), None);
        // A unit cannot be divided.
        assert_eq!(division(&[pace(1.0), pace(1.0)], 1.0, 1), None);
        assert!(division(&[pace(1.0), pace(1.0)], 1.0, 2).is_some());
    }

    #[test]
    fn devices_that_have_other_subtasks_share_none() {
        let both = [pace(1.0), pace(1.0)];
        assert_eq!(division(&both, 2.0, 64), None, "one each");
        // This one takes as long as ten others.
        assert!(division(&both, 1.4, 64).is_some());
        let three = [pace(1.0), pace(1.0), pace(1.0)];
        assert!(division(&three, 2.0, 64).is_some(), "two on three devices");
    }
}

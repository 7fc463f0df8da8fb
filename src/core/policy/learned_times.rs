//! The times of a device for parts of a layer, learned from layers.

use std::collections::VecDeque;

use pdawl_profiler::median;

/// Measurements that are kept of one amount. Older ones are dropped, so that a machine
/// may change.
const WINDOW: usize = 5;

/// Measurements with copies that are ignored in a row where there are some without.
/// More of them mean that copies are the rule now.
const MOST_IGNORED: u32 = 3;

/// A device's seconds by amount of work. The median of each amount counts, so that an
/// outlier has no effect.
///
/// A first run takes longer, since it writes data that stay on the device. So
/// measurements with and without copies are not mixed: those without replace the
/// others, for amounts up to twice as large or small.
#[derive(Clone, Debug, Default)]
pub(super) struct LearnedTimes {
    /// Ascending by amount.
    seen: Vec<Measurements>,
    /// The amounts with the medians of their seconds. The division of a layer needs
    /// them hundreds of times, while the devices wait.
    points: Vec<(f64, f64)>,
    /// Measurements in a row that were ignored.
    ignored: u32,
}

/// The last measurements of an amount.
#[derive(Clone, Debug)]
struct Measurements {
    amount: f64,
    last: VecDeque<f64>,
    /// Whether data were copied meanwhile.
    with_copies: bool,
}

impl LearnedTimes {
    /// Learns that `amount` took `seconds`. `with_copies`: for a good part of that time,
    /// data were written that the device may have next time.
    pub fn learn(&mut self, amount: f64, seconds: f64, with_copies: bool) {
        if !(amount > 0.0 && seconds >= 0.0 && amount.is_finite() && seconds.is_finite()) {
            return;
        }
        let alike =
            |seen: &Measurements| seen.amount <= amount * 2.0 && amount <= seen.amount * 2.0;
        let others = |seen: &Measurements| alike(seen) && seen.with_copies != with_copies;
        if with_copies && self.seen.iter().any(others) {
            self.ignored += 1;
            if self.ignored <= MOST_IGNORED {
                return;
            }
        }
        self.ignored = 0;
        self.seen.retain(|seen| !others(seen));
        let at = self
            .seen
            .partition_point(|seen| seen.amount < amount * (1.0 - 1e-9));
        let same = self
            .seen
            .get(at)
            .is_some_and(|seen| seen.amount <= amount * (1.0 + 1e-9));
        if !same {
            let last = VecDeque::new();
            let seen = Measurements {
                amount,
                last,
                with_copies,
            };
            self.seen.insert(at, seen);
        }
        let last = &mut self.seen[at].last;
        last.push_back(seconds);
        if last.len() > WINDOW {
            last.pop_front();
        }
        let seen = self.seen.iter();
        self.points = seen
            .map(|seen| (seen.amount, median(&seen.last).unwrap_or(0.0)))
            .collect();
    }

    /// Whether anything has been learned.
    pub fn knows(&self) -> bool {
        !self.seen.is_empty()
    }

    /// Whether this amount was measured.
    pub fn measured(&self, amount: f64) -> bool {
        let near = |a: &f64| (a - amount).abs() <= 1e-9 * amount;
        self.seen.iter().any(|seen| near(&seen.amount))
    }

    /// The expected seconds of an amount; `None` if nothing is known.
    ///
    /// Between two measured amounts time is linear. Beyond the largest it continues the
    /// line through the two largest, but not above proportion to the largest, since a
    /// device with more work is not less efficient. With one amount known it is in
    /// proportion.
    pub fn expect(&self, amount: f64) -> Option<f64> {
        if amount <= 0.0 {
            return Some(0.0);
        }
        let points = &self.points;
        let (first, last) = (points.first()?, points.last()?);
        let above = points.partition_point(|(a, _)| *a < amount);
        let line = |one: (f64, f64), other: (f64, f64)| {
            let slope = (other.1 - one.1) / (other.0 - one.0);
            one.1 + slope.max(0.0) * (amount - one.0)
        };
        let known = points.len();
        // More work may have taken less time, with other disturbances.
        let near = |(at, _): &&(f64, f64)| (at - amount).abs() <= 1e-9 * amount;
        if let Some((_, seconds)) = points.iter().find(near) {
            return Some(*seconds);
        }
        Some(if known == 1 {
            first.1 * amount / first.0
        } else if above == 0 {
            line(points[0], points[1]).clamp((first.1 * amount / first.0).min(first.1), first.1)
        } else if above == known {
            line(points[known - 2], points[known - 1]).clamp(last.1, last.1 * amount / last.0)
        } else {
            line(points[above - 1], points[above])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_measurement_is_in_proportion() {
        let mut learned = LearnedTimes::default();
        assert_eq!(learned.expect(3.0), None);
        learned.learn(2.0, 4.0, false);
        assert_eq!(learned.expect(3.0), Some(6.0));
        assert_eq!(learned.expect(0.0), Some(0.0));
    }

    #[test]
    fn a_fixed_part_is_learned_from_two() {
        let mut learned = LearnedTimes::default();
        learned.learn(10.0, 6.0, false);
        learned.learn(2.0, 2.0, false);
        assert_eq!(learned.expect(6.0), Some(4.0));
        assert_eq!(learned.expect(14.0), Some(8.0));
        assert_eq!(learned.expect(1.0), Some(1.5));
    }

    #[test]
    fn invalid_measurements_are_ignored() {
        let mut learned = LearnedTimes::default();
        for (amount, seconds) in [(0.0, 1.0), (f64::NAN, 1.0), (1.0, f64::INFINITY)] {
            learned.learn(amount, seconds, false);
        }
        assert!(!learned.knows());
        // More work in less time: noise, and never a negative prediction.
        learned.learn(1.0, 5.0, false);
        learned.learn(2.0, 4.0, false);
        assert!(learned.expect(9.0).is_some_and(|s| s >= 4.0));
        assert_eq!(
            (learned.expect(1.0), learned.expect(2.0)),
            (Some(5.0), Some(4.0))
        );
    }

    #[test]
    fn one_outlier_has_no_effect() {
        let mut learned = LearnedTimes::default();
        for seconds in [1.0, 1.0, 90.0, 1.0] {
            learned.learn(4.0, seconds, false);
        }
        assert_eq!(learned.expect(4.0), Some(1.0));
        assert!(learned.measured(4.0) && !learned.measured(5.0));
    }

    #[test]
    fn a_first_run_with_its_copies_is_forgotten_when_there_are_others() {
        let near = |learned: &LearnedTimes, seconds: f64| {
            let expected = learned.expect(14.0);
            expected.is_some_and(|expected| (expected - seconds).abs() < 1e-9)
        };
        let mut learned = LearnedTimes::default();
        learned.learn(15.0, 9.0, true);
        learned.learn(1.0, 0.5, false);
        assert_eq!(learned.expect(15.0), Some(9.0), "nothing else is alike");
        learned.learn(14.0, 1.4, false);
        assert!(learned.expect(15.0).is_some_and(|s| s < 1.6), "{learned:?}");
        // Some more copies change nothing; always some, and they are the rule.
        for _ in 0..3 {
            learned.learn(14.0, 3.0, true);
            assert!(near(&learned, 1.4), "{learned:?}");
        }
        learned.learn(14.0, 3.0, true);
        assert!(near(&learned, 3.0), "{learned:?}");
    }
}

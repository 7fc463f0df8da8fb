//! Apportionment: whole units in proportion to fractional weights, and when devices end that
//! share work so that they end together.

/// Divides `units` in proportion to `weights` by largest remainder. A weight
/// of 0 gets nothing; all counts are 0 where no weight is above 0.
pub fn largest_remainder(units: u64, weights: &[f64]) -> Vec<u64> {
    let total: f64 = weights.iter().sum();
    let mut counts = vec![0; weights.len()];
    if total.is_nan() || total <= 0.0 {
        return counts;
    }
    let exact = |i: usize| units as f64 * (weights[i] / total);
    for (i, count) in counts.iter_mut().enumerate() {
        *count = exact(i).floor() as u64;
    }
    let mut order: Vec<usize> = (0..weights.len()).filter(|i| weights[*i] > 0.0).collect();
    order.sort_by(|a, b| exact(*b).fract().total_cmp(&exact(*a).fract()));
    let left = units.saturating_sub(counts.iter().sum());
    for i in order.iter().cycle().take(left as usize) {
        counts[*i] += 1;
    }
    counts
}

/// A device that shares work with others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Runner {
    /// Seconds from the begin at which it could start.
    pub ready: f64,
    /// Units a second; 0 where unknown or inactive.
    pub rate: f64,
}

/// The time at which `left` units are done if all runners but `except` share them
/// and finish together; infinite if none can.
///
/// For the runners that are ready before the end, `end = (left + sum(rate ready)) /
/// sum(rate)`.
pub fn finish(left: f64, runners: &[Runner], except: Option<usize>) -> f64 {
    let mut end = f64::INFINITY;
    // A runner that is ready only after the end does not help. Leaving it out makes
    // the end earlier, so each round leaves out the same runners or more.
    loop {
        let (mut work, mut rate) = (left, 0.0);
        for (i, runner) in runners.iter().enumerate() {
            if Some(i) != except && runner.rate > 0.0 && runner.ready < end {
                work += runner.rate * runner.ready;
                rate += runner.rate;
            }
        }
        if rate <= 0.0 || work / rate >= end {
            return end;
        }
        end = work / rate;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_largest_remainders_get_the_odd_units() {
        assert_eq!(largest_remainder(10, &[1.0, 1.0, 1.0]), [4, 3, 3]);
        assert_eq!(largest_remainder(10, &[0.26, 0.26, 0.48]), [3, 2, 5]);
        assert_eq!(largest_remainder(3, &[0.0, 2.0]), [0, 3]);
        assert_eq!(largest_remainder(3, &[0.0, 0.0]), [0, 0]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_no_count_is_a_unit_off(
            units in 0u64..1_000_000,
            weights in prop::collection::vec(0.0f64..10.0, 1..9),
        ) {
            let total: f64 = weights.iter().sum();
            prop_assume!(total > 0.0);
            let counts = largest_remainder(units, &weights);
            prop_assert_eq!(counts.iter().sum::<u64>(), units);
            for (count, weight) in counts.iter().zip(&weights) {
                let exact = units as f64 * weight / total;
                prop_assert!((*count as f64 - exact).abs() < 1.0 + 1e-6);
            }
        }
    }

    fn runner(ready: f64, rate: f64) -> Runner {
        Runner { ready, rate }
    }

    #[test]
    fn a_runner_that_is_ready_too_late_does_not_count() {
        let runners = [runner(0.0, 10.0), runner(20.0, 1000.0)];
        assert_eq!(finish(100.0, &runners, None), 10.0);
        assert_eq!(finish(100.0, &runners, Some(0)), 20.1);
        assert_eq!(finish(100.0, &[runner(0.0, 0.0)], None), f64::INFINITY);
    }

    proptest! {
        #[test]
        fn by_the_end_exactly_what_is_left_is_done(
            left in 1u64..100_000,
            runners in prop::collection::vec((0.0f64..50.0, 0.01f64..100.0), 1..8),
        ) {
            let runners: Vec<Runner> = runners.iter().map(|(e, r)| runner(*e, *r)).collect();
            let end = finish(left as f64, &runners, None);
            let done: f64 = runners.iter().map(|r| r.rate * (end - r.ready).max(0.0)).sum();
            prop_assert!((done - left as f64).abs() < 1e-6 * left as f64);
        }
    }
}

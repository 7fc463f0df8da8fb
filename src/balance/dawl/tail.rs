//! The end of a step: when those at work would be through, and the last
//! tenth's quotas.

/// A device at work on the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Runner {
    /// Seconds after the step's begin at which it could start a further chunk.
    pub ready: f64,
    /// Pool units a second; 0 where unknown or not taking part.
    pub rate: f64,
}

/// When `left` units are done if the runners, but for `except`, share them so
/// that all finish together. Infinity if nobody can.
pub fn finish(left: u64, runners: &[Runner], except: Option<usize>) -> f64 {
    let mut end = f64::INFINITY;
    // Whoever is ready only after the end does not help; leaving it out makes
    // the end earlier, so each round can only leave out more.
    for _ in 0..=runners.len() {
        let (mut work, mut rate) = (left as f64, 0.0);
        for (i, runner) in runners.iter().enumerate() {
            if Some(i) != except && runner.rate > 0.0 && runner.ready < end {
                work += runner.rate * runner.ready;
                rate += runner.rate;
            }
        }
        if rate <= 0.0 {
            return end;
        }
        let earlier = work / rate;
        if earlier >= end {
            break;
        }
        end = earlier;
    }
    end
}

/// Fills `quotas` with the paper's floor(ratio x remaining), ratio being a
/// device's part of all work done so far.
pub fn quotas(remaining: u64, done: &[f64], quotas: &mut [u64]) {
    let total: f64 = done.iter().sum();
    for (quota, done) in quotas.iter_mut().zip(done) {
        *quota = if total > 0.0 {
            (done / total * remaining as f64).floor() as u64
        } else {
            0
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn runner(ready: f64, rate: f64) -> Runner {
        Runner { ready, rate }
    }

    #[test]
    fn a_runner_that_is_ready_too_late_does_not_count() {
        let runners = [runner(0.0, 10.0), runner(20.0, 1000.0)];
        assert_eq!(finish(100, &runners, None), 10.0);
        assert_eq!(finish(100, &runners, Some(0)), 20.1);
        assert_eq!(finish(100, &[runner(0.0, 0.0)], None), f64::INFINITY);
    }

    #[test]
    fn quotas_are_the_floor_of_the_ratio() {
        let mut counts = [0; 3];
        quotas(100, &[2.0, 1.0, 0.0], &mut counts);
        assert_eq!(counts, [66, 33, 0]);
        quotas(100, &[0.0; 3], &mut counts);
        assert_eq!(counts, [0; 3]);
    }

    proptest! {
        #[test]
        fn by_the_end_exactly_what_is_left_is_done(
            left in 1u64..100_000,
            runners in prop::collection::vec((0.0f64..50.0, 0.01f64..100.0), 1..8),
        ) {
            let runners: Vec<Runner> = runners.iter().map(|(e, r)| runner(*e, *r)).collect();
            let end = finish(left, &runners, None);
            let done: f64 = runners.iter().map(|r| r.rate * (end - r.ready).max(0.0)).sum();
            prop_assert!((done - left as f64).abs() < 1e-6 * left as f64);
        }
    }
}

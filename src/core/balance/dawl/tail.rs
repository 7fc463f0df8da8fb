//! The end of a step: the time at which the devices at work would finish the pool,
//! and the quotas of its last tenth (the paper's step 5).

/// A device at work on the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Runner {
    /// Seconds after the step's begin at which it could start another chunk.
    pub ready: f64,
    /// Pool units a second; 0 where unknown or inactive.
    pub rate: f64,
}

/// The time at which `left` units are done if all runners but `except` share them
/// and finish together; infinite if none can.
///
/// For the runners that are ready before the end, `end = (left + sum(rate ready)) /
/// sum(rate)`.
pub fn finish(left: u64, runners: &[Runner], except: Option<usize>) -> f64 {
    let mut end = f64::INFINITY;
    // A runner that is ready only after the end does not help. Leaving it out makes
    // the end earlier, so each round leaves out the same runners or more.
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

/// Sets each device's quota to the paper's `floor(ratio * remaining)`, where `ratio`
/// is its part of all work done so far.
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

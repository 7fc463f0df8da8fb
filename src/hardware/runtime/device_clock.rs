//! Converts a device's time stamps to the runtime's clock.
//!
//! A driver stamps commands with the device's own clock. Its offset to the
//! runtime's clock comes from tiny commands whose begin and end the host
//! brackets. The two clocks may drift (PoCL's is not slewed as `Instant` is), so
//! every later command corrects the offset as far as its own bracket demands: it
//! cannot start before it was enqueued, nor end after the host was notified.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use super::Nanos;

/// A device's clock.
#[derive(Debug)]
pub(super) struct Clock {
    epoch: Instant,
    /// What is added to the device's nanoseconds.
    offset: AtomicI64,
}

/// A command's times on the device's own clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamps {
    pub submitted: u64,
    pub started: u64,
    pub ended: u64,
}

/// A command's times on the runtime's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    pub submitted: Nanos,
    pub started: Nanos,
    pub ended: Nanos,
}

impl Clock {
    /// A clock that is not calibrated yet.
    pub(super) fn new(epoch: Instant) -> Self {
        Self {
            epoch,
            offset: AtomicI64::new(0),
        }
    }

    /// The runtime's time.
    pub(super) fn now(&self) -> Nanos {
        self.epoch.elapsed().as_nanos() as Nanos
    }

    /// Sets the offset from samples of (host before, stamps, host after).
    /// Each bounds it from both sides; the bounds are intersected, and a
    /// sample that contradicts the others is passed over.
    pub(super) fn calibrate(&self, samples: &[(Nanos, Stamps, Nanos)]) {
        let mut bounds: Vec<(i64, i64)> = samples
            .iter()
            .map(|(before, stamps, after)| bounds(*before, stamps, *after))
            .filter(|(low, high)| low <= high)
            .collect();
        bounds.sort_by_key(|(low, high)| high - low);
        let mut sorted = bounds.into_iter();
        let Some(mut best) = sorted.next() else {
            return;
        };
        for (low, high) in sorted {
            let narrower = (best.0.max(low), best.1.min(high));
            if narrower.0 <= narrower.1 {
                best = narrower;
            }
        }
        let middle = best.0 + (best.1 - best.0) / 2;
        self.offset.store(middle, Ordering::Relaxed);
    }

    /// Converts two stamps within a command that has these times.
    pub(super) fn within(&self, times: &Times, (from, until): (u64, u64)) -> (Nanos, Nanos) {
        let offset = self.offset.load(Ordering::Relaxed);
        let from = host(from, offset).clamp(times.started, times.ended);
        (from, host(until, offset).clamp(from, times.ended))
    }

    /// A command's times. It was enqueued at `queued`, and the host was notified of
    /// its end at `notified`; the result never contradicts either.
    pub(super) fn times(&self, queued: Nanos, stamps: &Stamps, notified: Nanos) -> Times {
        let (low, high) = bounds(queued, stamps, notified);
        let mut offset = self.offset.load(Ordering::Relaxed);
        if low <= high && !(low..=high).contains(&offset) {
            offset = offset.clamp(low, high);
            self.offset.store(offset, Ordering::Relaxed);
        }
        let started = host(stamps.started, offset).clamp(queued, notified);
        Times {
            submitted: host(stamps.submitted, offset).clamp(queued, started),
            started,
            ended: host(stamps.ended, offset).clamp(started, notified),
        }
    }
}

/// A stamp on the runtime's clock.
fn host(stamp: u64, offset: i64) -> Nanos {
    (stamp as i64).wrapping_add(offset).max(0) as Nanos
}

/// The least and the greatest offset that a bracketed command allows.
fn bounds(before: Nanos, stamps: &Stamps, after: Nanos) -> (i64, i64) {
    (
        (before as i64).wrapping_sub(stamps.started as i64),
        (after as i64).wrapping_sub(stamps.ended as i64),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamps(submitted: u64, started: u64, ended: u64) -> Stamps {
        Stamps {
            submitted,
            started,
            ended,
        }
    }

    #[test]
    fn the_offset_is_the_middle_of_what_the_samples_allow() {
        let clock = Clock::new(Instant::now());
        // The true offset is -1000.
        clock.calibrate(&[
            (90, stamps(1095, 1100, 1110), 150),
            (195, stamps(1195, 1200, 1210), 300),
            (395, stamps(1395, 1400, 1410), 415),
        ]);
        let times = clock.times(500, &stamps(1505, 1510, 1520), 600);
        assert_eq!(
            (times.submitted, times.started, times.ended),
            (505, 510, 520)
        );
    }

    #[test]
    fn a_drifting_clock_is_followed() {
        let clock = Clock::new(Instant::now());
        clock.calibrate(&[(100, stamps(1100, 1100, 1100), 100)]);
        // The device's clock has run 50 ns ahead since.
        let times = clock.times(2000, &stamps(3055, 3060, 3080), 2030);
        assert_eq!((times.started, times.ended), (2010, 2030));
        let next = clock.times(2100, &stamps(3155, 3160, 3180), 2500);
        assert_eq!((next.started, next.ended), (2110, 2130));
    }

    #[test]
    fn nonsense_stamps_are_held_in_order() {
        let clock = Clock::new(Instant::now());
        let times = clock.times(1000, &stamps(9, 7, 3), 1001);
        assert!(1000 <= times.submitted && times.submitted <= times.started);
        assert!(times.started <= times.ended && times.ended <= 1001);
        assert_eq!(clock.times(5, &stamps(0, u64::MAX, 0), 9).ended, 9);
    }
}

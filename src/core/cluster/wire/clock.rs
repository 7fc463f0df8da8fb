//! The difference of two clocks, by Cristian's method.
//!
//! Cristian, "Probabilistic clock synchronization", Distributed Computing 3 (1989),
//! section 3: the answer was made at some time between question and arrival. The middle is
//! wrong by half the round trip at most, so the shortest of several is the best.

use crate::time::Nanos;

/// The best comparison so far of rank 0's clock with another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    best: Option<Best>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Best {
    round_trip: Nanos,
    offset: i64,
}

impl Comparison {
    /// An exchange: the question left and the answer arrived at these times of the own
    /// clock; the answer is the time of the other one.
    pub fn exchanged(&mut self, left: Nanos, answer: Nanos, arrived: Nanos) {
        let round_trip = arrived - left;
        if self.best.is_none_or(|best| round_trip < best.round_trip) {
            let middle = left + round_trip / 2;
            // Both count from the start of a process, so the difference fits.
            let offset = middle.wrapping_sub(answer).cast_signed();
            self.best = Some(Best { round_trip, offset });
        }
    }

    /// Nanoseconds to add to the other clock to get the own one.
    pub fn offset(&self) -> i64 {
        self.best.map_or(0, |best| best.offset)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_error_is_at_most_half_the_shortest_round_trip(
            offset in -1_000_000_000i64..1_000_000_000,
            trips in prop::collection::vec((0u64..100_000, 0u64..100_000), 1..20),
        ) {
            let mut comparison = Comparison::default();
            let mut now = 5_000_000_000;
            for &(there, back) in &trips {
                let answer = (now + there).checked_add_signed(-offset).unwrap();
                comparison.exchanged(now, answer, now + there + back);
                now += there + back + 1;
            }
            let shortest = trips.iter().map(|(there, back)| there + back).min().unwrap();
            prop_assert!((comparison.offset() - offset).unsigned_abs() <= shortest / 2 + 1);
        }
    }
}

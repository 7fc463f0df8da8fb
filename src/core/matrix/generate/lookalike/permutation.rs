//! A random permutation of rows that takes no memory: a Feistel network on row numbers,
//! applied again while its result is too large.

use crate::matrix::generate::random::mix;

/// Rounds after which the order looks random. A round changes both parts.
const ROUNDS: u64 = 2;

/// A permutation of `0..count`.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    count: u32,
    /// Bits of a number's lower part.
    low_bits: u32,
    /// Masks of the bits of both parts.
    low: u64,
    high: u64,
    seed: u64,
}

impl Permutation {
    pub fn new(count: u32, seed: u64) -> Self {
        let bits = u32::BITS - count.saturating_sub(1).leading_zeros();
        Self {
            count,
            low_bits: bits / 2,
            low: (1 << (bits / 2)) - 1,
            high: (1 << bits.div_ceil(2)) - 1,
            seed: mix(seed),
        }
    }

    /// The image of a number below `count`.
    pub fn of(&self, number: u32) -> u32 {
        let mut place = self.once(number.into());
        while place >= self.count.into() {
            place = self.once(place);
        }
        place as u32
    }

    /// One application of the network: each part in turn is changed by the other.
    fn once(&self, number: u64) -> u64 {
        let (mut high, mut low) = (number >> self.low_bits, number & self.low);
        for round in 0..ROUNDS {
            high ^= mix(self.seed ^ low ^ (2 * round) << 60) & self.high;
            low ^= mix(self.seed ^ high ^ (2 * round + 1) << 60) & self.low;
        }
        high << self.low_bits | low
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_place_is_taken_once(count in 1u32..3000, seed: u64) {
            let permutation = Permutation::new(count, seed);
            let mut places: Vec<u32> = (0..count).map(|number| permutation.of(number)).collect();
            places.sort_unstable();
            prop_assert_eq!(places, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn neighbours_are_parted() {
        let permutation = Permutation::new(1_000_003, 1);
        let far =
            (0..10_000).filter(|i| permutation.of(*i).abs_diff(permutation.of(i + 1)) > 10_000);
        assert!(far.count() > 9_700);
    }
}

//! Random numbers that are the same on every machine and for every number of threads:
//! each row has its own sequence (splitmix64).

use crate::random::mixed;

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence number `stream` of a seed.
    pub fn of(seed: u64, stream: u64) -> Self {
        let state = mix(seed.wrapping_add(mix(stream)));
        Self { state }
    }

    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Uniform in `0..below`; 0 if that is empty.
    pub fn below(&mut self, below: u32) -> u32 {
        ((u128::from(self.next()) * u128::from(below)) >> 64) as u32
    }

    /// Uniform in (0, 1].
    pub fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() <= probability
    }
}

/// A number of which every bit depends on every bit of another.
pub fn mix(bits: u64) -> u64 {
    mixed(bits.wrapping_add(0x9e37_79b9_7f4a_7c15))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_reproducible_and_unlike() {
        let first = |seed, stream| Random::of(seed, stream).next();
        assert_eq!(first(1, 2), first(1, 2));
        let all = [
            first(1, 2),
            first(2, 1),
            first(1, 3),
            first(2, 2),
            first(0, 0),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|b| a != b));
        }
    }

    /// Whoever has made a matrix with a seed makes it again with the next
    /// version.
    #[test]
    fn sequences_stay_what_they_were() {
        let mut random = Random::of(1, 0);
        assert_eq!(random.next(), 3_032_427_185_751_592_386);
        assert_eq!(random.below(1000), 978);
    }

    #[test]
    fn draws_fill_their_range() {
        let mut random = Random::of(7, 0);
        let mut counts = [0u32; 10];
        for _ in 0..10_000 {
            counts[random.below(10) as usize] += 1;
            let unit = random.unit();
            assert!(unit > 0.0 && unit <= 1.0);
        }
        assert!(
            counts.iter().all(|count| (850..1150).contains(count)),
            "{counts:?}"
        );
        assert_eq!(random.below(0), 0);
        let hits = (0..10_000).filter(|_| random.chance(0.25)).count();
        assert!((2300..2700).contains(&hits), "{hits}");
    }
}

//! Random numbers from a seed.

/// A small deterministic generator (xorshift).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Uniform in `0..below` (0 if that is empty).
    pub fn below(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        if below == 0 {
            0
        } else {
            (self.0 >> 11) % below
        }
    }
}

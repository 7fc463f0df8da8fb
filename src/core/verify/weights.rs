//! Random weights of sums that stand for many numbers.
//!
//! A weight is a random real number of 52 bits, from 1/2 to 1 in magnitude. So a single wrong
//! number is never hidden, and several, such as numbers that are exchanged, hide one another
//! only by chance: whatever the other weights are, the sum of their errors, of which e is the
//! greatest, is below b with a probability of at most 2 b / e. Sums with several independent
//! vectors of weights hide it with the product of these.

use crate::random::bits;

/// Independent vectors of weights.
pub(super) const VECTORS: usize = 2;

/// The mean square of a weight.
pub(super) const MEAN_SQUARE: f64 = 7.0 / 12.0;

/// A weight of a vector.
pub(crate) fn weight(seed: u64, vector: usize, index: u64) -> f64 {
    let bits = bits(seed.wrapping_add((vector as u64) << 40), index);
    // The sign and the 52 bits of a fraction.
    let magnitude = 0.5 + (bits >> 12) as f64 * 0.5_f64.powi(53);
    if bits & 1 == 0 { magnitude } else { -magnitude }
}

/// The weights of a range, vector by vector.
pub(crate) fn weights(seed: u64, range: std::ops::Range<u64>) -> [Vec<f64>; VECTORS] {
    std::array::from_fn(|vector| range.clone().map(|at| weight(seed, vector, at)).collect())
}

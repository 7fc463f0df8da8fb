//! Whether numbers are sorted, and are those that were given.

/// The hash of a multiset: the sum of its elements' hashes, whatever their order, and their
/// number. Two sums of 64 bits by chance are equal with a probability of 2^-64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MultisetHash {
    sum: u64,
    count: u64,
}

impl MultisetHash {
    /// Adds an element.
    pub fn add(&mut self, element: u64) {
        self.sum = self.sum.wrapping_add(mixed(element));
        self.count += 1;
    }
}

/// A permutation of the numbers of 64 bits that depends on every bit.
///
/// Source: `splitmix64` (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Whether a number may be before another one: the smaller one first, -0 before 0, and what
/// is no number at the end.
pub fn ascends(one: f64, other: f64) -> bool {
    if one.is_nan() || other.is_nan() {
        return other.is_nan();
    }
    let is_zero = one == 0.0 && other == 0.0;
    match is_zero {
        true => one.is_sign_negative() || other.is_sign_positive(),
        false => one <= other,
    }
}

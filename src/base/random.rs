//! Random initial data, as a function of seed and index.

/// A number uniform in [0, 1). It depends on the seed and the index alone, so that each
/// device can fill its own range. It is exact in single precision.
pub fn uniform(seed: u64, index: u64) -> f64 {
    // 24 bits are exact in single precision, too.
    (bits(seed, index) >> 40) as f64 / f64::from(1 << 24)
}

/// Random bits.
pub fn bits(seed: u64, index: u64) -> u64 {
    let place = index.wrapping_add(seed.wrapping_mul(0xa076_1d64_78bd_642f));
    mixed(place.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The finaliser of splitmix64: every bit of a number affects every bit of the result.
pub fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

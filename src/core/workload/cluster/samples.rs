//! Samples of a result's blocks, which are compared with a reference.

use crate::cluster::space::Block;

/// Elements of a block that are compared, if it has more.
const SAMPLES: u64 = 256;

/// Positions of a block that are compared: row and column in the space.
pub(super) fn positions(block: &Block, seed: u64) -> Vec<[u64; 2]> {
    let all = block.elements();
    let position = |number: u64| {
        [
            block.rows.start + number / block.width(),
            block.columns.start + number % block.width(),
        ]
    };
    if all <= SAMPLES {
        return (0..all).map(position).collect();
    }
    let first = block
        .rows
        .start
        .wrapping_mul(31)
        .wrapping_add(block.columns.start);
    let mut random = fastrand::Rng::with_seed(seed ^ first.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    // The corners are where halos end.
    let corners = [0, block.width() - 1, all - block.width(), all - 1];
    let others = (4..SAMPLES).map(|_| random.u64(..all));
    corners.into_iter().chain(others).map(position).collect()
}

/// A single of a block's bytes.
pub(super) fn single(
    block: &Block,
    bytes: &[u8],
    [row, column]: [u64; 2],
    per: u64,
    which: u64,
) -> f32 {
    let number = (row - block.rows.start) * block.width() + column - block.columns.start;
    let at = 4 * (number * per + which) as usize;
    match bytes.get(at..at + 4).and_then(|four| four.first_chunk()) {
        Some(four) => f32::from_ne_bytes(*four),
        None => f32::NAN,
    }
}

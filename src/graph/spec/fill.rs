//! Random data for buffers that a kernel reads.

use super::resolve::Kernel;
use super::scalar::Base;
use crate::random::uniform;

/// Whole numbers stay below this.
const MOST: u64 = 128;

/// Buffers of fewer elements are counters and the like, not tables.
const TABLE: u64 = 16;

/// What whole numbers among a kernel's data stay below: kernels use them as
/// indices, so all of its tables have that many elements.
pub fn indices(kernel: &Kernel) -> u64 {
    let elements = kernel.buffers().map(|(_, buffer)| buffer.elements);
    elements
        .filter(|elements| *elements >= TABLE)
        .min()
        .map_or(MOST, |least| least.min(MOST))
}

/// Fills `bytes` with numbers of a type: fractions from -1 to 1, whole numbers
/// from 0 to below `indices`.
pub fn random(base: Base, indices: u64, seed: u64, bytes: &mut [u8]) {
    let most = indices.max(1) as f64;
    let each = base.bytes() as usize;
    for (index, element) in (0u64..).zip(bytes.chunks_exact_mut(each)) {
        let uniform = uniform(seed, index);
        let fraction = 2.0 * uniform - 1.0;
        match base {
            Base::Float => element.copy_from_slice(&(fraction as f32).to_ne_bytes()),
            Base::Double => element.copy_from_slice(&fraction.to_ne_bytes()),
            // 0.25 to 0.5 in steps of the format: no NaN, no infinity.
            Base::Half => {
                let half = 0x3400 | (uniform * 1024.0) as u16;
                element.copy_from_slice(&half.to_ne_bytes());
            }
            _ => {
                let number = ((uniform * most) as u64).to_le_bytes();
                element.copy_from_slice(&number[..each]);
                if cfg!(target_endian = "big") {
                    element.reverse();
                }
            }
        }
    }
}

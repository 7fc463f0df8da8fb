//! Random initial contents of buffers that a kernel reads.

use super::resolve::Kernel;
use super::scalar::Base;
use crate::random::uniform;

/// Integers are below this.
const MOST: u64 = 128;

/// Buffers of fewer elements are taken for counters, not for tables.
const TABLE: u64 = 16;

/// The bound of integers in a kernel's data. Kernels use integers as indices, so
/// each of its tables has at least that many elements.
pub fn indices(kernel: &Kernel) -> u64 {
    let elements = kernel.buffers().map(|(_, buffer)| buffer.elements);
    elements
        .filter(|elements| *elements >= TABLE)
        .min()
        .map_or(MOST, |least| least.min(MOST))
}

/// Fills `bytes` with numbers of a type, the first of which has the index `first`:
/// floating-point numbers from -1 to 1, integers from 0 to below `indices`.
pub fn random(base: Base, indices: u64, seed: u64, first: u64, bytes: &mut [u8]) {
    let most = indices.max(1) as f64;
    let each = base.bytes() as usize;
    for (index, element) in (first..).zip(bytes.chunks_exact_mut(each)) {
        let uniform = uniform(seed, index);
        let fraction = 2.0 * uniform - 1.0;
        match base {
            Base::Float => element.copy_from_slice(&(fraction as f32).to_ne_bytes()),
            Base::Double => element.copy_from_slice(&fraction.to_ne_bytes()),
            // The bits of 0.25 to 0.5: neither NaN nor infinity.
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

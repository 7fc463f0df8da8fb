//! The checking codelet's native implementation.

use std::ops::Range;

use super::Digest;
use crate::HostValue;
use crate::host::Arguments;

/// # Safety
/// That of `HostKernel`.
pub(super) unsafe fn run(args: &[HostValue], _first: u64, units: Range<u64>) {
    if units.is_empty() {
        return;
    }
    let args = Arguments {
        codelet: "mix",
        values: args,
    };
    let (reads, updates) = (args.u32(1), args.u32(2));
    let memories = (args.values.len() - 3) / 2;
    let memory = |index: usize| (args.memory::<u8>(3 + 2 * index), args.u64(4 + 2 * index));
    let mut digest = Digest::new(args.u64(0) as u64);
    for index in 0..reads + updates {
        let (address, bytes) = memory(index);
        // SAFETY: the memory has so many bytes, and nobody writes them now.
        digest = digest.take(unsafe { std::slice::from_raw_parts(address, bytes) });
    }
    for (number, index) in (0..).zip(reads..memories) {
        let (address, bytes) = memory(index);
        // The bytes of a new memory may be uninitialised until here.
        // SAFETY: the memory has so many bytes, which nobody else uses now.
        let bytes = unsafe {
            address.write_bytes(0, bytes);
            std::slice::from_raw_parts_mut(address, bytes)
        };
        digest.give(number, bytes);
    }
}

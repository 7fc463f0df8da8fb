//! Copies memory, to measure memory bandwidth.
//!
//! A unit is a piece of memory of a chosen size. A launch copies consecutive units;
//! its first unit begins at the first byte of both memories. No kernel moves memory
//! faster than a copy, so its bytes a second, read and written, bound every
//! computation that streams its data.
//!
//! ## Arguments
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `from` | memory | units to be read |
//! | 1 | `to` | memory | units to be written; does not overlap `from` |
//! | 2 | `unit_bytes` | u32 | bytes of a unit, a multiple of 16 |
//!
//! The native copy.

use std::ops::Range;

use crate::HostValue;
use crate::host::{Arguments, Level, Stores};

use super::{Codelet, Cost, HostCode, KernelSource, NdRange, OpenClKernel, Shape, Value};

/// Work-items that copy a unit on an OpenCL device.
const GROUP: usize = 256;

/// The copying codelet.
pub fn codelet() -> Codelet {
    Codelet {
        name: "copy".into(),
        host: Some(HostCode::Kernel(on_host)),
        opencl: Some(OpenClKernel {
            source: KernelSource::new(
                include_str!("../../kernels/copy.cl"),
                "kernels/copy.cl",
                "copy",
                format!("-DITEMS={GROUP}"),
            ),
            fp64: false,
            shape: Shape::Of(groups),
        }),
        library: None,
    }
}

/// The cost of copying `units` of `unit_bytes`: every byte is read and written.
pub fn cost(units: u64, unit_bytes: u32) -> Cost {
    Cost {
        flops: 0.0,
        bytes: 2.0 * units as f64 * f64::from(unit_bytes),
    }
}

/// The arguments for copying units of `unit_bytes`.
pub fn args(from: super::Memory, to: super::Memory, unit_bytes: u32) -> Vec<Value> {
    vec![
        Value::Memory(from),
        Value::Memory(to),
        Value::U32(unit_bytes),
    ]
}

fn groups(units: &Range<u64>, _args: &[Value]) -> NdRange {
    NdRange::group_per_unit(units, GROUP).near(vec![GROUP])
}

/// Copies a tile's units; see the folder's page.
///
/// # Safety
/// That of `HostKernel`.
unsafe fn on_host(args: &[HostValue], first: u64, units: Range<u64>) {
    let args = Arguments {
        codelet: "copy",
        values: args,
    };
    let (from, to) = (args.memory::<u8>(0), args.memory::<u8>(1));
    let unit_bytes = args.u32(2);
    let at = (units.start - first) as usize * unit_bytes;
    let bytes = (units.end - units.start) as usize * unit_bytes;
    let stores = Stores::for_bytes(args.bytes());
    // SAFETY: both memories hold the launch's units, and only this call
    // touches the tile's part of the target.
    unsafe { copy(Level::best(), stores, from.add(at), to.add(at), bytes) }
}

/// Copies `bytes`, past the caches if `stores` says so and `level` can.
///
/// # Safety
/// As for `copy_nonoverlapping`, and the processor has the level.
unsafe fn copy(level: Level, stores: Stores, from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        match (level, stores) {
            #[cfg(target_arch = "x86_64")]
            (Level::Avx512, Stores::Stream) => streaming::avx512(from, to, bytes),
            #[cfg(target_arch = "x86_64")]
            (Level::Avx2, Stores::Stream) => streaming::avx2(from, to, bytes),
            #[cfg(target_arch = "x86_64")]
            (Level::Sse2, Stores::Stream) => streaming::sse2(from, to, bytes),
            // The standard library's copy is the best through the caches.
            _ => to.copy_from_nonoverlapping(from, bytes),
        }
    }
}

/// Copies with streaming stores.
///
/// One stream, four lines a round, and no software prefetch: the processor's
/// own prefetcher follows a single stream best. Measured on one Zen 5 core, 512 MiB:
/// 59 GB/s; with software prefetch 46 to 56, several streams 56, plain vectors 42,
/// the C library's copy 43.
#[cfg(target_arch = "x86_64")]
mod streaming {
    use crate::host::{LINE, Lanes, Real, fence};

    /// # Safety
    /// As for `copy_nonoverlapping`, and the processor has AVX-512F.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn avx512(from: *const u8, to: *mut u8, bytes: usize) {
        // SAFETY: the caller's contract.
        unsafe { lines::<<f32 as Real>::Avx512>(from, to, bytes) }
    }

    /// # Safety
    /// As for `copy_nonoverlapping`, and the processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn avx2(from: *const u8, to: *mut u8, bytes: usize) {
        // SAFETY: the caller's contract.
        unsafe { lines::<<f32 as Real>::Avx2>(from, to, bytes) }
    }

    /// # Safety
    /// As for `copy_nonoverlapping`; every x86-64 processor has SSE2.
    pub(super) unsafe fn sse2(from: *const u8, to: *mut u8, bytes: usize) {
        // SAFETY: the caller's contract.
        unsafe { lines::<<f32 as Real>::Sse2>(from, to, bytes) }
    }

    /// # Safety
    /// As for `copy_nonoverlapping`, and the processor has `V`.
    #[inline(always)]
    unsafe fn lines<V: Lanes<Scalar = f32>>(from: *const u8, to: *mut u8, bytes: usize) {
        let round = 4 * LINE;
        // Plain up to the first aligned line, and after the last full round.
        let head = to.align_offset(LINE).min(bytes);
        let end = bytes - (bytes - head) % round;
        // SAFETY: all offsets are within `bytes`; a vector of `f32` may hold
        // any bits, and loads need no alignment.
        unsafe {
            to.copy_from_nonoverlapping(from, head);
            for at in (head..end).step_by(round) {
                for vector in 0..round / size_of::<V>() {
                    let at = at + vector * size_of::<V>();
                    V::load(from.add(at).cast()).stream(to.add(at).cast());
                }
            }
            to.add(end)
                .copy_from_nonoverlapping(from.add(end), bytes - end);
        }
        fence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_costs_a_read_and_a_write() {
        assert_eq!(cost(3, 16).bytes, 96.0);
    }

    #[test]
    fn a_unit_is_a_work_group() {
        let ndrange = groups(&(10..13), &[]);
        assert_eq!(ndrange, NdRange::new(vec![3 * GROUP]).near(vec![GROUP]));
    }

    /// Bytes with a pattern whose period is no power of two.
    fn pattern(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i % 251) as u8).collect()
    }

    #[test]
    fn every_level_copies_its_bytes_and_no_others() {
        const POISON: u8 = 0xEE;
        let from = pattern(5000);
        for level in Level::available() {
            for stores in [Stores::Plain, Stores::Stream] {
                for bytes in [0, 1, 16, 63, 64, 65, 255, 256, 257, 320, 1000, 4096] {
                    for (skip_from, skip_to) in [(0, 0), (1, 0), (0, 1), (16, 48), (7, 63)] {
                        let mut to = vec![POISON; 5000];
                        // SAFETY: at most 4096 bytes from at most byte 63 on.
                        unsafe {
                            copy(
                                level,
                                stores,
                                from.as_ptr().add(skip_from),
                                to.as_mut_ptr().add(skip_to),
                                bytes,
                            );
                        }
                        let (before, rest) = to.split_at(skip_to);
                        let (copied, after) = rest.split_at(bytes);
                        assert_eq!(copied, &from[skip_from..skip_from + bytes]);
                        assert!(before.iter().chain(after).all(|byte| *byte == POISON));
                    }
                }
            }
        }
    }

    #[test]
    fn tiles_of_a_launch_make_the_whole() {
        let mut from = pattern(10 * 48);
        let mut to = vec![0u8; 10 * 48];
        let memory = |bytes: &mut Vec<u8>| HostValue::Memory {
            address: bytes.as_mut_ptr(),
            bytes: bytes.len() as u64,
        };
        let args = [memory(&mut from), memory(&mut to), HostValue::U32(48)];
        for units in [100..101, 101..107, 107..107, 107..110] {
            // SAFETY: both memories hold the launch's ten units.
            unsafe { on_host(&args, 100, units) };
        }
        assert_eq!(to, from);
    }
}

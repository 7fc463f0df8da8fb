//! A checking codelet: every byte that it writes depends on every byte that it reads
//! and on the kernel's number. A graph of such kernels has a wrong result if any
//! kernel runs before its time, twice or never, or reads bytes that have not arrived
//! or have already left.
//!
//! A kernel has memories of three kinds: it reads some, updates some in place, and
//! writes some without reading them.
//!
//! ## Arguments
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `number` | u64 | the kernel's number |
//! | 1 | `reads` | u32 | how many memories it reads |
//! | 2 | `updates` | u32 | how many it updates |
//! | 3, 5, ... | | memory | those that it reads, then those that it updates, then those that it writes |
//! | 4, 6, ... | | u64 | bytes of the memory before, fewer than 2^32 |
//!
//! A kernel is one unit, computed by one work-item: an update needs all bytes before
//! it changes any, so memories should have few bytes.
//!
//! ## Bytes
//!
//! A digest begins with the number and takes in the bytes that are read and updated
//! (FNV-1a, after each memory its length). Byte `i` of result `r` is a hash of the
//! digest, `r` and `i`; results are the updated memories and then the written ones.
//!
//! The checking codelet's native implementation.
//!
//! The checking codelet's OpenCL implementation: a kernel for each number of memories.

use std::fmt::Write;
use std::ops::Range;

use crate::host::Arguments;
use crate::{HostValue, KernelSource, NdRange, OpenClKernel, Shape};

use super::{Codelet, HostCode, Value};

/// The memories of a kernel, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mix {
    pub reads: u32,
    pub updates: u32,
    pub writes: u32,
}

impl Mix {
    /// One.
    pub fn units(&self) -> u64 {
        1
    }

    /// The arguments before the memories.
    pub fn values(&self, number: u64) -> [Value; 3] {
        [
            Value::U64(number),
            Value::U32(self.reads),
            Value::U32(self.updates),
        ]
    }

    /// The codelet of all kernels with so many memories of each kind.
    pub fn codelet(&self) -> Codelet {
        Codelet {
            name: "mix".into(),
            host: Some(HostCode::Kernel(on_host)),
            opencl: Some(opencl_kernel(self)),
            library: None,
        }
    }
}

/// The digest of a kernel: its number, and what it reads and updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Digest {
    /// Of nothing but a number.
    pub fn new(number: u64) -> Self {
        Self(number.wrapping_mul(FACTOR))
    }

    /// With a memory taken in.
    pub fn take(self, bytes: &[u8]) -> Self {
        let digest = bytes.iter().fold(self.0, |digest, byte| {
            (digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        // The length, so that a byte more or less always matters.
        Self((digest ^ bytes.len() as u64).wrapping_mul(FACTOR))
    }

    /// Writes the bytes of result `number`.
    pub fn give(self, number: u64, bytes: &mut [u8]) {
        for (at, byte) in (0..).zip(bytes) {
            let mixed = (self.0 ^ (number << 32 | at)).wrapping_mul(FACTOR);
            let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            *byte = (mixed >> 56) as u8;
        }
    }
}

/// # Safety
/// That of `HostKernel`.
unsafe fn on_host(args: &[HostValue], _first: u64, units: Range<u64>) {
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

/// The opencl_kernel's name; OpenCL C has a function `mix`.
const ENTRY: &str = "mix_bytes";

fn opencl_kernel(mix: &Mix) -> OpenClKernel {
    OpenClKernel {
        source: KernelSource::new(source(mix), "kernels/mix.cl", ENTRY, ""),
        fp64: false,
        shape: Shape::Of(|_, _| NdRange::new(vec![1])),
    }
}

/// The text of `kernels/mix.cl` and the opencl_kernel.
fn source(mix: &Mix) -> String {
    let inputs = mix.reads + mix.updates;
    let (mut parameters, mut takes, mut gives) = (String::new(), String::new(), String::new());
    for memory in 0..inputs + mix.writes {
        let constant = if memory < mix.reads { "const " } else { "" };
        // Writing to a string never fails.
        let _ = write!(
            parameters,
            ", __global {constant}uchar *m{memory}, ulong bytes{memory}"
        );
        if memory < inputs {
            let _ = writeln!(
                takes,
                "    digest = take(digest, m{memory}, bytes{memory});"
            );
        }
        if memory >= mix.reads {
            let result = memory - mix.reads;
            let _ = writeln!(
                gives,
                "    give(digest, {result}, m{memory}, bytes{memory});"
            );
        }
    }
    format!(
        "{}\n__kernel void {ENTRY}(ulong number, uint reads, uint updates{parameters})\n{{\n    \
         ulong digest = number * {FACTOR}UL;\n{takes}{gives}}}\n",
        include_str!("../../kernels/mix.cl")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_read_changes_most_bytes_written() {
        let written = |digest: Digest| {
            let mut bytes = [0; 40];
            digest.give(1, &mut bytes);
            bytes
        };
        let first = [7, 8, 9];
        let digest = Digest::new(3).take(&first).take(&[0]);
        let others = [
            Digest::new(4).take(&first).take(&[0]),
            Digest::new(3).take(&[7, 8, 10]).take(&[0]),
            Digest::new(3).take(&[0]).take(&first),
            Digest::new(3).take(&[7, 8]).take(&[9, 0]),
            Digest::new(3).take(&first),
            Digest::new(3).take(&first).take(&[0, 0]),
        ];
        for other in others {
            let pairs = written(digest).into_iter().zip(written(other));
            assert!(pairs.filter(|(one, other)| one == other).count() < 4);
        }
        let mut second = [0; 40];
        digest.give(2, &mut second);
        assert_ne!(second, written(digest));
    }

    #[test]
    fn the_kernel_takes_what_it_reads_and_gives_what_it_writes() {
        let text = source(&Mix {
            reads: 1,
            updates: 1,
            writes: 1,
        });
        let opencl_kernel = text.split("__kernel").nth(1).unwrap();
        let lines: Vec<&str> = opencl_kernel.lines().map(str::trim).collect();
        assert_eq!(
            lines[3..7],
            [
                "digest = take(digest, m0, bytes0);",
                "digest = take(digest, m1, bytes1);",
                "give(digest, 0, m1, bytes1);",
                "give(digest, 1, m2, bytes2);",
            ]
        );
        assert!(
            opencl_kernel.contains("__global const uchar *m0, ulong bytes0, __global uchar *m1")
        );
    }
}

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

mod host;
mod opencl;

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
            host: Some(HostCode::Kernel(host::run)),
            opencl: Some(opencl::kernel(self)),
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
}

//! Names of memory, and the values that a kernel is called with.

use std::sync::atomic::{AtomicU64, Ordering};

/// Memory on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(u64);

impl BufferId {
    /// An id that no other buffer in the process has.
    pub fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Memory on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostMemoryId(u64);

impl HostMemoryId {
    /// An id that no other host memory in the process has.
    pub fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Memory that a kernel reads or writes.
///
/// A device that shares the host's memory takes `Host`; one with memory of its
/// own takes its own `Device` buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    Host(HostMemoryId),
    Device(BufferId),
}

/// A kernel argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Memory(Memory),
    U32(u32),
    U64(u64),
    F32(f32),
    F64(f64),
}

/// An argument as a host kernel sees it.
#[derive(Clone, Copy, Debug)]
pub enum HostValue {
    /// First byte and length of a host region or a buffer.
    Memory {
        address: *mut u8,
        bytes: u64,
    },
    U32(u32),
    U64(u64),
    F32(f32),
    F64(f64),
}

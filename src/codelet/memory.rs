//! Ids of memory, and the arguments of a kernel.

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
    /// Memory that the kernel only reads: the host may read it meanwhile, too.
    ReadOnly(Memory),
    U32(u32),
    U64(u64),
    F32(f32),
    F64(f64),
    /// Any other plain value.
    Raw(RawValue),
    /// So many bytes of a work-group's local memory.
    Local(u64),
}

impl Value {
    /// The memory, if it is some.
    pub fn memory(self) -> Option<Memory> {
        match self {
            Self::Memory(memory) | Self::ReadOnly(memory) => Some(memory),
            _ => None,
        }
    }

    /// The value as a host kernel receives it; `None` for memory, whose address only
    /// the runtime knows.
    pub fn plain(self) -> Option<HostValue> {
        match self {
            Self::Memory(_) | Self::ReadOnly(_) => None,
            Self::U32(value) => Some(HostValue::U32(value)),
            Self::U64(value) => Some(HostValue::U64(value)),
            Self::F32(value) => Some(HostValue::F32(value)),
            Self::F64(value) => Some(HostValue::F64(value)),
            Self::Raw(value) => Some(HostValue::Raw(value)),
            Self::Local(bytes) => Some(HostValue::Local(bytes)),
        }
    }
}

/// A plain value of at most [`RawValue::MOST`] bytes, as stored in memory: a `char`, a
/// `float4`, a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RawValue {
    bytes: [u8; Self::MOST],
    length: u8,
}

impl RawValue {
    /// Most bytes of a value.
    pub const MOST: usize = 64;

    /// These bytes, in the machine's order; `None` for more than [`Self::MOST`], or none.
    pub fn new(value: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::MOST];
        let length = u8::try_from(value.len()).ok().filter(|n| *n > 0)?;
        bytes.get_mut(..value.len())?.copy_from_slice(value);
        Some(Self { bytes, length })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// An argument as a host kernel receives it.
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
    Raw(RawValue),
    /// Local memory has no meaning on the host; it only takes a position.
    Local(u64),
}

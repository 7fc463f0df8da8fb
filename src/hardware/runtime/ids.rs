//! Identifiers of devices, queues and events. Those of queues and events are
//! unique within the process, so that a union of runtimes translates none.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

/// A device: its index in [`super::Devices::devices`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId(pub usize);

/// A device's presence between two losses: the first one is 0, and a device that comes back
/// after a loss has a later one. Its memory and its queues belong to the generation in
/// which they were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Generation(pub u64);

/// An in-order command queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueId(u64);

impl QueueId {
    /// An id that no other queue in the process has.
    pub fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A command's completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(u64);

impl EventId {
    /// An event that no command has. A thread of a driver sends a completion with it where the
    /// backend is to be polled ([`super::Backend::poll`]).
    pub const NOBODYS: Self = Self(u64::MAX);

    /// An id that no other event in the process has.
    pub fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A map by ids. Ids count up and no adversary chooses them, so multiplicative
/// hashing spreads them well enough, in a fraction of the default hasher's time.
/// Every command looks up several.
pub type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Multiplicative (Fibonacci) hashing.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        // The map uses both the upper bits and the lower ones.
        self.0 = mixed ^ (mixed >> 32);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }
}

/// What drivers say about a GPU's identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GpuIdentity {
    /// Unique in the world.
    pub uuid: Option<[u8; 16]>,
    /// Number of its PCI bus, and of the device there.
    pub pci: Option<(u32, u32)>,
}

impl GpuIdentity {
    /// Whether both are of one GPU. Without anything that both know they are not.
    pub fn is(&self, other: &Self) -> bool {
        match (self.uuid, other.uuid) {
            (Some(own), Some(others)) => own == others,
            _ => self.pci.is_some() && self.pci == other.pci,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_known_by_its_uuid_or_else_by_its_place() {
        let of = |uuid: Option<u8>, pci| GpuIdentity {
            uuid: uuid.map(|byte| [byte; 16]),
            pci,
        };
        let place = Some((3, 0));
        assert!(of(Some(1), place).is(&of(Some(1), None)));
        assert!(!of(Some(1), place).is(&of(Some(2), place)));
        assert!(of(None, place).is(&of(Some(2), place)));
        assert!(!of(None, place).is(&of(None, Some((3, 1)))));
        assert!(!of(None, None).is(&of(None, None)));
    }
}

//! The two versions of a grid in host memory, and copies between them and devices' rings.

use std::ops::Range;

use crate::runtime::{BufferId, Command, HostMemoryId, Memory};
use crate::workload::Ring;

/// The two versions in host memory.
#[derive(Clone, Copy)]
pub(super) struct HostGrids {
    pub versions: [HostMemoryId; 2],
    /// Which of them is the present one.
    pub present: usize,
    /// Whether that has all units.
    pub has_all: bool,
    /// The first unit that they have, and how many they have.
    pub first: u64,
    pub rows: u64,
    /// Units of the whole grid.
    pub units: u64,
    pub unit_bytes: u64,
}

impl HostGrids {
    /// The present version (0) or the next one (1), as a ring.
    pub fn ring(&self, ahead: usize) -> Ring {
        Ring {
            memory: Memory::Host(self.version(ahead)),
            slots: self.rows,
            unit: self.first,
            slot: 0,
        }
    }

    pub fn version(&self, ahead: usize) -> HostMemoryId {
        self.versions[(self.present + ahead) % 2]
    }

    /// Writes of `units` of the present version into a device's ring.
    pub fn writes(&self, units: Range<u64>, ring: &Ring) -> Vec<(Range<u64>, Command)> {
        let host = self.version(0);
        self.transfers(units, ring, |bytes, buffer, offset| {
            Command::write(host, bytes, buffer, offset)
        })
    }

    /// Reads of `units` from a device's ring into the version `ahead`.
    pub fn reads(
        &self,
        units: Range<u64>,
        ahead: usize,
        ring: &Ring,
    ) -> Vec<(Range<u64>, Command)> {
        let host = self.version(ahead);
        self.transfers(units, ring, |bytes, buffer, offset| {
            Command::read(buffer, offset, host, bytes)
        })
    }

    fn transfers(
        &self,
        units: Range<u64>,
        ring: &Ring,
        command: impl Fn(Range<u64>, BufferId, u64) -> Command,
    ) -> Vec<(Range<u64>, Command)> {
        let Memory::Device(buffer) = ring.memory else {
            return Vec::new();
        };
        let (each, first) = (self.unit_bytes, self.first);
        let transfer = |(run, slot): (Range<u64>, u64)| {
            let bytes = (run.start - first) * each..(run.end - first) * each;
            let command = command(bytes, buffer, slot * each);
            (run, command)
        };
        ring.runs(units).map(transfer).collect()
    }
}

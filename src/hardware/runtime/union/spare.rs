//! Freed pinned memory, which serves later allocations of its length.
//!
//! To make and pin pages takes longer than to copy them. So a pinned region that is freed stays
//! pinned, as long as all pinned memory together is no more than the union once had in use.
//! The process keeps unpinned memory itself; see [`crate::runtime::host`].

use std::collections::BTreeMap;
use std::sync::Arc;

use super::SHIFT;
use crate::runtime::HostRegion;

/// What a spare region's contents are set to where debug assertions are on: memory that is
/// allocated has no contents to rely on.
const POISON: u8 = 0xA5;

/// The spare pinned regions of a union.
#[derive(Default)]
pub(super) struct Spare {
    /// By bytes; the latest freed last.
    regions: BTreeMap<u64, Vec<HostRegion>>,
    /// Bytes of them.
    bytes: u64,
    /// Bytes of the regions in use, and the most that ever were.
    used: u64,
    most_used: u64,
}

impl Spare {
    /// A region of these bytes that no command uses any more, shifted like this if one is; see
    /// [`SHIFT`].
    pub(super) fn take(&mut self, bytes: u64, shift: u64) -> Option<HostRegion> {
        let regions = self.regions.get_mut(&bytes)?;
        // Whoever uses a region holds its keeper.
        let is_unused = |region: &mut HostRegion| Arc::get_mut(&mut region.keeper).is_some();
        let is_shifted = |region: &HostRegion| region.address.addr().get() as u64 & SHIFT == shift;
        let mut all = regions.iter_mut();
        let latest = all.rposition(|region| is_shifted(region) && is_unused(region));
        let free = latest.or_else(|| regions.iter_mut().rposition(is_unused))?;
        let region = regions.swap_remove(free);
        if regions.is_empty() {
            self.regions.remove(&bytes);
        }
        self.bytes -= bytes;
        if cfg!(debug_assertions) {
            // SAFETY: the region has so many bytes, and nothing else refers to them.
            unsafe { region.address.write_bytes(POISON, bytes as usize) };
        }
        Some(region)
    }

    /// A region of these bytes is to be allocated: drops spare ones until all are no more
    /// than the most that were in use.
    pub(super) fn make_room(&mut self, bytes: u64) {
        let wanted = self.used.saturating_add(bytes);
        let most = self.most_used.max(wanted);
        while wanted.saturating_add(self.bytes) > most {
            let Some(mut largest) = self.regions.last_entry() else {
                return;
            };
            if let Some(region) = largest.get_mut().pop() {
                self.bytes -= region.bytes;
            }
            if largest.get().is_empty() {
                largest.remove();
            }
        }
    }

    /// Drops all spare regions. Whether there were any.
    pub(super) fn clear(&mut self) -> bool {
        self.bytes = 0;
        !std::mem::take(&mut self.regions).is_empty()
    }

    /// A region of these bytes is in use.
    pub(super) fn used(&mut self, bytes: u64) {
        self.used += bytes;
        self.most_used = self.most_used.max(self.used);
    }

    /// A region was freed. Commands may still use it.
    pub(super) fn put(&mut self, region: HostRegion) {
        self.used -= region.bytes;
        self.bytes += region.bytes;
        self.regions.entry(region.bytes).or_default().push(region);
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::NonNull;

    use super::*;
    use crate::runtime::HostMemoryId;

    /// A region of these bytes, as the union allocates it.
    fn allocated(spare: &mut Spare, bytes: u64) -> HostRegion {
        let region = spare.take(bytes, 0).unwrap_or_else(|| {
            spare.make_room(bytes);
            fresh(bytes)
        });
        spare.used(bytes);
        region
    }

    fn fresh(bytes: u64) -> HostRegion {
        let mut memory = vec![0u128; bytes.div_ceil(16) as usize].into_boxed_slice();
        HostRegion {
            id: HostMemoryId::fresh(),
            address: NonNull::new(memory.as_mut_ptr().cast()).unwrap(),
            bytes,
            keeper: Arc::new(memory),
        }
    }

    #[test]
    fn a_freed_region_serves_once_nothing_uses_it() {
        let mut spare = Spare::default();
        let region = allocated(&mut spare, 100);
        let (address, command) = (region.address, Arc::clone(&region.keeper));
        spare.put(region);
        assert!(spare.take(100, 0).is_none());
        drop(command);
        assert!(spare.take(99, 0).is_none());
        assert_eq!(spare.take(100, 0).unwrap().address, address);
        assert!(spare.take(100, 0).is_none());
    }

    #[test]
    fn all_regions_together_never_exceed_the_most_in_use() {
        let mut spare = Spare::default();
        for round in 1..50u64 {
            let lengths = [1000 - round, 3 * round, 700, round];
            let held: Vec<_> = (lengths.iter())
                .map(|bytes| allocated(&mut spare, *bytes))
                .collect();
            assert_eq!(spare.used, lengths.iter().sum::<u64>());
            assert!(spare.used + spare.bytes <= spare.most_used);
            held.into_iter().for_each(|region| spare.put(region));
            let kept = spare.regions.values().flatten().map(|region| region.bytes);
            assert_eq!(kept.sum::<u64>(), spare.bytes);
        }
        assert!(spare.clear());
        assert!(!spare.clear());
        assert_eq!((spare.bytes, spare.used), (0, 0));
    }
}

//! Host memory: anonymous mappings, with huge pages where the kernel has them.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{Advice, MmapMut, MmapOptions};

use crate::codelet::HostMemoryId;
use crate::machine::host::Memory;
use crate::runtime::{HostRegion, RuntimeError};

/// Size and alignment of a huge page. Fewer page faults and fewer TLB misses were
/// worth 13 % of a stencil's speed.
const HUGE: usize = 2 << 20;

/// Bytes of all regions of the process, touched or not.
static RESERVED: AtomicU64 = AtomicU64::new(0);

/// Reservations up to this sum need no look at the machine's memory, which takes 50 us: a
/// subtask of a cluster's run may have several small regions.
static SEEN: AtomicU64 = AtomicU64::new(0);

/// How far [`SEEN`] may be beyond what is reserved: a small part of any machine's memory.
const AHEAD: u64 = 16 << 20;

/// Bytes of [`RESERVED`], returned when dropped.
struct Reservation(u64);

impl Reservation {
    /// Reserves so many bytes, if the machine has them beside all others reserved.
    ///
    /// Linux overcommits memory and kills processes that use too much of it, so
    /// nothing is requested that it could not provide.
    fn make(bytes: u64) -> Result<Self, String> {
        let seen = SEEN.load(Ordering::Relaxed);
        let within_seen = RESERVED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |before| {
            let after = before.checked_add(bytes)?;
            (after <= seen).then_some(after)
        });
        if within_seen.is_ok() {
            return Ok(Self(bytes));
        }
        let memory = Memory::read();
        let resident = Memory::resident().unwrap_or(0);
        let most = |before: u64| match &memory {
            // Memory reserved and touched is no longer available, but this process's.
            Some(memory) => memory.obtainable(before.min(resident)),
            None => u64::MAX,
        };
        RESERVED
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |before| {
                let after = before.checked_add(bytes)?;
                (after <= most(before)).then_some(after)
            })
            .map(|before| {
                let after = before + bytes;
                let ahead = after.saturating_add(AHEAD);
                let seen = if ahead <= most(before) { ahead } else { after };
                SEEN.store(seen, Ordering::Relaxed);
                Self(bytes)
            })
            .map_err(|before| {
                let memory = memory.map_or_else(String::new, |memory| format!("{memory}, and "));
                format!(
                    "{memory}{before} bytes are already reserved for this run; choose a smaller size"
                )
            })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let left = RESERVED.fetch_sub(self.0, Ordering::Relaxed) - self.0;
        SEEN.fetch_min(left.saturating_add(AHEAD), Ordering::Relaxed);
    }
}

/// Keeps a region mapped and its bytes reserved.
struct Mapping {
    _mapping: MmapMut,
    _reservation: Reservation,
}

/// Maps `bytes` of zeroed memory without touching it, so that each page is placed
/// near the worker that writes it first. From 2 MiB on the mapping is aligned to
/// huge pages and asks for them.
///
/// # Errors
/// [`RuntimeError::OutOfMemory`] when the machine has less than that.
pub fn map(device: &str, bytes: u64) -> Result<HostRegion, RuntimeError> {
    let refuse = |why: String| RuntimeError::OutOfMemory {
        device: device.to_owned(),
        requested: bytes,
        why,
    };
    let reservation = Reservation::make(bytes).map_err(refuse)?;
    let too_long = || refuse("more than this processor can address".to_owned());
    let length = usize::try_from(bytes.max(1)).map_err(|_| too_long())?;
    let slack = if length < HUGE { 0 } else { HUGE };
    let mapped = length.checked_add(slack).ok_or_else(too_long)?;
    let mut mapping = MmapOptions::new().len(mapped).map_anon().map_err(|error| {
        let state = Memory::read().map_or_else(String::new, |memory| format!(" ({memory})"));
        refuse(format!("{error}{state}"))
    })?;
    let mut address = mapping.as_mut_ptr();
    if slack > 0 {
        // A kernel without huge pages refuses; small pages serve as well.
        let _ = mapping.advise(Advice::HugePage);
        address = address.wrapping_add(address.align_offset(HUGE));
    }
    let address =
        NonNull::new(address).ok_or_else(|| refuse("the mapping has no address".to_owned()))?;
    Ok(HostRegion {
        id: HostMemoryId::fresh(),
        address,
        bytes,
        keeper: Arc::new(Mapping {
            _mapping: mapping,
            _reservation: reservation,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_regions_begin_at_a_huge_page_and_are_whole() {
        let region = map("host", 5 << 20).unwrap();
        assert_eq!(region.address.as_ptr() as usize % HUGE, 0);
        // SAFETY: the region is ours alone and this long.
        let bytes = unsafe { std::slice::from_raw_parts_mut(region.address.as_ptr(), 5 << 20) };
        bytes[0] = 1;
        bytes[(5 << 20) - 1] = 2;
        assert_eq!(bytes.iter().map(|b| u32::from(*b)).sum::<u32>(), 3);
    }

    #[test]
    fn small_and_empty_regions_are_page_aligned() {
        for bytes in [0, 1, 4097] {
            let region = map("host", bytes).unwrap();
            assert_eq!(region.bytes, bytes);
            assert_eq!(region.address.as_ptr() as usize % 4096, 0);
        }
    }

    #[test]
    fn what_the_machine_has_not_got_is_refused_with_figures() {
        for bytes in [1 << 50, u64::MAX] {
            let Err(error) = map("host:2", bytes) else {
                panic!("{bytes} bytes were reserved");
            };
            let text = error.to_string();
            assert!(
                text.starts_with(&format!("host:2: {bytes} bytes")),
                "{text}"
            );
            assert!(text.contains("available"), "{text}");
        }
    }

    #[test]
    fn regions_that_fit_one_by_one_but_not_together_are_refused() {
        let memory = Memory::read().unwrap();
        let half = memory.obtainable(0) / 5 * 3;
        let first = map("host", half).unwrap();
        let Err(error) = map("host", half) else {
            panic!("both were reserved");
        };
        assert!(error.to_string().contains("already reserved"), "{error}");
        drop(first);
        assert!(map("host", half).is_ok());
    }
}

//! Host memory: anonymous mappings, with huge pages where the kernel has them. Large ones are
//! kept when they are dropped, and used again: the system clears each fresh page, which takes
//! as long as many kernels that fill it.

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
        let kept = Kept::lock().bytes as u64;
        let resident = Memory::resident().unwrap_or(0).saturating_sub(kept);
        let most = |before: u64| match &memory {
            // Memory reserved and touched is no longer available, but this process's.
            // What is kept counts where a control group has a limit.
            Some(memory) => memory.obtainable(before.min(resident)).saturating_sub(kept),
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
    mapping: Option<MmapMut>,
    _reservation: Reservation,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if let Some(mapping) = self.mapping.take() {
            Kept::lock().keep(mapping);
        }
    }
}

/// Large mappings that no region uses, the latest last.
struct Kept {
    mappings: VecDeque<MmapMut>,
    bytes: usize,
}

static KEPT: Mutex<Kept> = Mutex::new(Kept {
    mappings: VecDeque::new(),
    bytes: 0,
});

/// Bytes of all kept mappings, at most. They are not reserved: who needs them has them
/// unmapped first.
const MOST_KEPT: usize = 512 << 20;

/// A mapping is used again for a region that needs at least this part of it, in quarters.
const LEAST_USED: usize = 3;

impl Kept {
    fn lock() -> MutexGuard<'static, Self> {
        // No code panics while it holds the lock.
        KEPT.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a mapping instead of others that were kept before it.
    fn keep(&mut self, mapping: MmapMut) {
        let length = mapping.len();
        if !(HUGE..=MOST_KEPT).contains(&length) {
            return;
        }
        while self.bytes + length > MOST_KEPT {
            let oldest = self.mappings.pop_front();
            self.bytes -= oldest.map_or(0, |oldest| oldest.len());
        }
        self.bytes += length;
        self.mappings.push_back(mapping);
    }

    /// The smallest mapping of at least this length and little more.
    fn take(&mut self, length: usize) -> Option<MmapMut> {
        let fits = |of: &MmapMut| of.len() >= length && length >= of.len() / 4 * LEAST_USED;
        let found = (self.mappings.iter().enumerate())
            .filter(|(_, mapping)| fits(mapping))
            .min_by_key(|(_, mapping)| mapping.len());
        let (index, _) = found?;
        let mapping = self.mappings.remove(index)?;
        self.bytes -= mapping.len();
        Some(mapping)
    }

    /// Unmaps all. Whether there were any.
    fn clear(&mut self) -> bool {
        self.bytes = 0;
        !std::mem::take(&mut self.mappings).is_empty()
    }
}

/// Maps `bytes` of memory. What is mapped afresh is not touched, so that each page is placed
/// near the worker that writes it first; what was mapped before has the contents that it had.
/// From 2 MiB on the mapping is aligned to huge pages and asks for them.
///
/// # Errors
/// [`RuntimeError::OutOfMemory`] when the machine has less than that.
pub fn map(device: &str, bytes: u64) -> Result<HostRegion, RuntimeError> {
    let refuse = |why: String| RuntimeError::OutOfMemory {
        device: device.to_owned(),
        requested: bytes,
        why,
    };
    let reservation = Reservation::make(bytes).or_else(|why| {
        let cleared = Kept::lock().clear();
        match cleared {
            true => Reservation::make(bytes),
            false => Err(why),
        }
    });
    let reservation = reservation.map_err(refuse)?;
    let too_long = || refuse("more than this processor can address".to_owned());
    let length = usize::try_from(bytes.max(1)).map_err(|_| too_long())?;
    let slack = if length < HUGE { 0 } else { HUGE };
    let mapped = length.checked_add(slack).ok_or_else(too_long)?;
    let kept = match slack {
        0 => None,
        _ => Kept::lock().take(mapped),
    };
    let mut mapping = match kept {
        Some(mapping) => mapping,
        None => MmapOptions::new().len(mapped).map_anon().map_err(|error| {
            let state = Memory::read().map_or_else(String::new, |memory| format!(" ({memory})"));
            refuse(format!("{error}{state}"))
        })?,
    };
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
            mapping: Some(mapping),
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

    fn mapping(length: usize) -> MmapMut {
        MmapOptions::new().len(length).map_anon().unwrap()
    }

    #[test]
    fn large_mappings_are_kept_for_regions_of_about_their_size() {
        let mut kept = Kept {
            mappings: VecDeque::new(),
            bytes: 0,
        };
        for huge in [1, 8, 5, 4] {
            kept.keep(mapping(huge * HUGE));
        }
        kept.keep(mapping(HUGE - 1));
        assert_eq!(kept.bytes, 18 * HUGE);
        assert!(kept.take(3 * HUGE - 1).is_none(), "three quarters at least");
        assert_eq!(kept.take(4 * HUGE - 9).unwrap().len(), 4 * HUGE);
        assert_eq!(kept.take(4 * HUGE).unwrap().len(), 5 * HUGE);
        assert!(kept.take(4 * HUGE).is_none() && kept.take(9 * HUGE).is_none());
        assert!(kept.clear() && !kept.clear());
        assert!(kept.take(HUGE).is_none());
    }

    #[test]
    fn the_oldest_mappings_leave_first() {
        let mut kept = Kept {
            mappings: VecDeque::new(),
            bytes: 0,
        };
        kept.keep(mapping(MOST_KEPT / 2));
        kept.keep(mapping(MOST_KEPT / 4));
        kept.keep(mapping(MOST_KEPT / 2));
        assert_eq!(kept.bytes, MOST_KEPT / 4 * 3);
        assert_eq!(kept.mappings[0].len(), MOST_KEPT / 4);
        kept.keep(mapping(MOST_KEPT + 1));
        assert_eq!(kept.bytes, MOST_KEPT / 4 * 3);
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

//! Host memory between zones that nobody may touch, for a process that launches a user's
//! kernel to find out whether it leaves its buffers.
//!
//! A region begins or ends where a zone is ([`Exact`]). What lies between its other side and
//! the zone there has a pattern, so a write there is found afterwards ([`overwritten`]). An
//! access to a zone is a fault, which [`watch`] reports.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use super::{HostMemoryId, HostRegion, RuntimeError};

/// What OpenCL promises of the first byte of a buffer, whose kernel may read it as `double16`.
const ALIGNMENT: usize = 128;

/// The side of a region on which the zone follows at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exact {
    Begin,
    /// The region's first byte is aligned as its length allows: at least as its elements are.
    End,
    /// The region's first byte is aligned as OpenCL promises, and up to 127 bytes lie between
    /// its end and the zone.
    AlignedEnd,
}

/// Bytes of a zone: a kernel that believes in a much larger buffer ends in it. They are
/// addresses only, and take no memory.
const ZONE: usize = 1 << 30;

/// Regions at a time: more than a kernel may have arguments.
const MOST: usize = 1024;

/// What lies around a region.
const PATTERN: u8 = 0xa5;

/// The side of a region on which it was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Before,
    After,
}

/// A region that was left, by its number: regions count from 0 in the order of their
/// allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    pub region: u64,
    pub side: Side,
    /// How far: 1 for the byte that is next to the region.
    pub bytes: u64,
}

/// A region's place among the slots; `begin` is 0 where there is none. A handler of a signal
/// may read it at any time.
struct Slot {
    taken: AtomicBool,
    number: AtomicU64,
    begin: AtomicUsize,
    end: AtomicUsize,
}

static SLOTS: [Slot; MOST] = [const {
    Slot {
        taken: AtomicBool::new(false),
        number: AtomicU64::new(0),
        begin: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
    }
}; MOST];

static NEXT: AtomicU64 = AtomicU64::new(0);

/// What [`watch`] was given, as a pointer to a function; null before.
static REPORT: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// The number of the next region.
pub fn next() -> u64 {
    NEXT.load(Ordering::Acquire)
}

/// From now on a fault (SIGSEGV, SIGBUS) in any thread ends the process with status 1,
/// after a call of `report`: with the region whose zone was touched, or with `None` for
/// another address.
///
/// `report` is called by a handler of signals: it may allocate no memory and take no lock.
///
/// # Errors
/// When the system refuses the handler.
pub fn watch(report: fn(Option<Left>)) -> io::Result<()> {
    REPORT.store(report as *const () as *mut (), Ordering::Release);
    // SAFETY: all zeros are a valid `sigaction` without flags and with an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = fault as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO;
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: `fault` has the signature that SA_SIGINFO asks for, and calls only what
        // handlers may call.
        if unsafe { libc::sigaction(signal, &action, ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

extern "C" fn fault(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the system passes information of a fault, which has an address.
    let address = unsafe { (*info).si_addr() } as usize;
    let report = REPORT.load(Ordering::Acquire);
    if !report.is_null() {
        // SAFETY: only `watch` stores there, and only such functions.
        let report: fn(Option<Left>) = unsafe { std::mem::transmute(report) };
        report(left_at(address));
    }
    // SAFETY: it returns to nobody, and handlers may call it.
    unsafe { libc::_exit(1) }
}

/// The region in whose zones an address lies.
fn left_at(address: usize) -> Option<Left> {
    SLOTS.iter().find_map(|slot| {
        let begin = slot.begin.load(Ordering::Acquire);
        let end = slot.end.load(Ordering::Acquire);
        let (side, bytes) = match begin {
            0 => return None,
            _ if (begin.saturating_sub(ZONE)..begin).contains(&address) => {
                (Side::Before, begin - address)
            }
            _ if (end..end.saturating_add(ZONE)).contains(&address) => {
                (Side::After, address - end + 1)
            }
            _ => return None,
        };
        Some(Left {
            region: slot.number.load(Ordering::Acquire),
            side,
            bytes: bytes as u64,
        })
    })
}

/// The first of the regions from this number on that was left by a write just beside it.
/// Nothing may be in flight.
pub fn overwritten(first: u64) -> Option<Left> {
    let page = page();
    let mut all: Vec<(u64, usize, usize)> = (SLOTS.iter())
        .map(|slot| {
            (
                slot.number.load(Ordering::Acquire),
                slot.begin.load(Ordering::Acquire),
                slot.end.load(Ordering::Acquire),
            )
        })
        .filter(|(number, begin, _)| *begin != 0 && *number >= first)
        .collect();
    all.sort_unstable();
    all.into_iter().find_map(|(region, begin, end)| {
        let bytes = |from: usize, to: usize| {
            // SAFETY: these are bytes of the region's own pages, which stay mapped as
            // long as it has its slot, and which nothing writes now.
            unsafe { std::slice::from_raw_parts(from as *const u8, to - from) }
        };
        let differs = |byte: &u8| *byte != PATTERN;
        // The byte that is nearest to the region, on either side.
        let before = bytes(begin / page * page, begin)
            .iter()
            .rev()
            .position(differs);
        let after = || {
            bytes(end, end.next_multiple_of(page))
                .iter()
                .position(differs)
        };
        let (side, beside) = match before {
            Some(beside) => (Side::Before, beside),
            None => (Side::After, after()?),
        };
        Some(Left {
            region,
            side,
            bytes: beside as u64 + 1,
        })
    })
}

fn page() -> usize {
    // SAFETY: it only returns a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// A mapping with a slot, both given back when it is dropped.
struct Mapping {
    address: *mut libc::c_void,
    bytes: usize,
    slot: &'static Slot,
}

// SAFETY: the address is only passed back to the system.
unsafe impl Send for Mapping {}
// SAFETY: as above; nothing is done through a shared reference.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.slot.begin.store(0, Ordering::Release);
        // SAFETY: it was mapped so, and its only user gives it back.
        unsafe { libc::munmap(self.address, self.bytes) };
        self.slot.taken.store(false, Ordering::Release);
    }
}

/// Allocates a region of zeros.
pub(super) fn allocate(bytes: u64, exact: Exact) -> Result<HostRegion, RuntimeError> {
    let refuse = |why: String| RuntimeError::OutOfMemory {
        device: "host memory between guard zones".to_owned(),
        requested: bytes,
        why,
    };
    let page = page();
    let size = usize::try_from(bytes.max(1)).ok();
    let size = size.and_then(|size| match exact {
        Exact::AlignedEnd => size.checked_next_multiple_of(ALIGNMENT),
        Exact::Begin | Exact::End => Some(size),
    });
    let pages = size.and_then(|size| size.checked_next_multiple_of(page));
    let all = pages.and_then(|pages| pages.checked_add(2 * ZONE));
    let (Some(size), Some(pages), Some(all)) = (size, pages, all) else {
        return Err(refuse("more than can be addressed".to_owned()));
    };
    // SAFETY: a new mapping, at an address that the system chooses.
    let address = unsafe {
        libc::mmap(
            ptr::null_mut(),
            all,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(refuse(io::Error::last_os_error().to_string()));
    }
    let free = |slot: &&Slot| !slot.taken.swap(true, Ordering::AcqRel);
    let Some(slot) = SLOTS.iter().find(free) else {
        // SAFETY: it was mapped just now, and nobody knows it.
        unsafe { libc::munmap(address, all) };
        return Err(refuse(format!("{MOST} regions have such zones already")));
    };
    let mapping = Mapping {
        address,
        bytes: all,
        slot,
    };
    let first = address as usize + ZONE;
    // SAFETY: these pages lie within the mapping, which nobody else knows.
    let opened = unsafe {
        libc::mprotect(
            first as *mut libc::c_void,
            pages,
            libc::PROT_READ | libc::PROT_WRITE,
        )
    };
    if opened != 0 {
        return Err(refuse(io::Error::last_os_error().to_string()));
    }
    let begin = match exact {
        Exact::Begin => first,
        Exact::End | Exact::AlignedEnd => first + (pages - size),
    };
    let end = begin + bytes.max(1) as usize;
    for (from, to) in [(first, begin), (end, first + pages)] {
        // SAFETY: within the pages that were opened just now.
        unsafe { ptr::write_bytes(from as *mut u8, PATTERN, to - from) };
    }
    let number = NEXT.fetch_add(1, Ordering::AcqRel);
    slot.number.store(number, Ordering::Release);
    slot.end.store(end, Ordering::Release);
    slot.begin.store(begin, Ordering::Release);
    let address = NonNull::new(begin as *mut u8);
    Ok(HostRegion {
        id: HostMemoryId::fresh(),
        address: address.ok_or_else(|| refuse("it is mapped at 0".to_owned()))?,
        bytes: bytes.max(1),
        keeper: Arc::new(mapping),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;

    /// `overwritten` reads the pages of all regions, so none may go meanwhile.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn a_region_ends_at_its_zone() {
        let _alone = alone();
        for bytes in [1u64, 128, 4000, 4096, 70_000] {
            let first = next();
            for exact in [Exact::Begin, Exact::End, Exact::AlignedEnd] {
                let region = allocate(bytes, exact).unwrap();
                let begin = region.address.addr().get();
                let end = begin + bytes as usize;
                let zone = end.next_multiple_of(page());
                match exact {
                    Exact::Begin => assert_eq!(begin % page(), 0),
                    Exact::End => assert_eq!(end, zone),
                    Exact::AlignedEnd => {
                        assert_eq!(begin % ALIGNMENT, 0);
                        assert!(zone - end < ALIGNMENT);
                    }
                }
                let before = begin / page() * page() - 1;
                for (address, side, distance) in [
                    (zone, Side::After, zone - end + 1),
                    (before, Side::Before, begin - before),
                ] {
                    let left = left_at(address).expect("a zone");
                    assert_eq!((left.side, left.bytes), (side, distance as u64));
                    assert!(left.region >= first);
                }
                assert_eq!(left_at(begin), None);
                assert_eq!(left_at(end - 1), None);
            }
        }
    }

    #[test]
    fn writes_just_beside_a_region_are_found() {
        let _alone = alone();
        // Its end and its beginning lie within pages.
        let regions: Vec<HostRegion> = (0..3)
            .map(|_| allocate(3900, Exact::AlignedEnd).unwrap())
            .collect();
        let number = |region: &HostRegion| {
            let begin = region.address.addr().get();
            let slot = SLOTS
                .iter()
                .find(|s| s.begin.load(Ordering::Acquire) == begin);
            slot.expect("its slot").number.load(Ordering::Acquire)
        };
        let of = |left: Option<Left>, region: &HostRegion| {
            left.filter(|left| left.region == number(region))
                .map(|left| left.side)
        };
        for (at, side) in [(3900isize, Side::After), (-1, Side::Before)] {
            let region = &regions[1];
            assert_eq!(of(overwritten(number(region)), region), None);
            // SAFETY: the byte lies on the region's pages.
            let byte = unsafe { &mut *region.address.as_ptr().offset(at) };
            *byte = 0;
            assert_eq!(of(overwritten(number(region)), region), Some(side));
            *byte = PATTERN;
        }
    }
}

//! Host memory: anonymous mappings that can have huge pages.

use std::ptr::NonNull;
use std::sync::Arc;

use memmap2::{Advice, MmapOptions};

use crate::codelet::HostMemoryId;
use crate::machine::host::Memory;
use crate::runtime::{HostRegion, RuntimeError};

/// Size and alignment of a huge page. Fewer page faults and fewer misses of
/// the address cache were worth 13 % of a stencil's speed.
const HUGE: usize = 2 << 20;

/// Maps `bytes` of zeroed memory without touching it, so that each page comes
/// to lie near the worker that writes it first. From 2 MiB on it is aligned to
/// huge pages and asks for them.
///
/// # Errors
/// [`RuntimeError::OutOfMemory`] when the machine has not that much to give.
pub fn map(device: &str, bytes: u64) -> Result<HostRegion, RuntimeError> {
    let refuse = |why: String| RuntimeError::OutOfMemory {
        device: device.to_owned(),
        requested: bytes,
        why,
    };
    let memory = Memory::read();
    // Linux promises more memory than it has and kills who uses it; so the
    // promise is not asked for.
    if let Some(memory) = &memory
        && bytes > memory.obtainable()
    {
        return Err(refuse(format!("{memory}; choose a smaller size")));
    }
    let length = usize::try_from(bytes.max(1))
        .map_err(|_| refuse("more than this processor can address".to_owned()))?;
    let huge = length >= HUGE;
    let mapped = if huge {
        length
            .checked_add(HUGE)
            .ok_or_else(|| refuse("more than this processor can address".to_owned()))?
    } else {
        length
    };
    let mut mapping = MmapOptions::new().len(mapped).map_anon().map_err(|error| {
        let state = memory.map_or_else(String::new, |memory| format!(" ({memory})"));
        refuse(format!("{error}{state}"))
    })?;
    let address = mapping.as_mut_ptr();
    let address = if huge {
        // A kernel without huge pages refuses; small pages serve as well.
        let _ = mapping.advise(Advice::HugePage);
        address.wrapping_add(address.align_offset(HUGE))
    } else {
        address
    };
    let address =
        NonNull::new(address).ok_or_else(|| refuse("the mapping has no address".to_owned()))?;
    Ok(HostRegion {
        id: HostMemoryId::fresh(),
        address,
        bytes,
        keeper: Arc::new(mapping),
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
                panic!("{bytes} bytes were promised");
            };
            let text = error.to_string();
            assert!(
                text.starts_with(&format!("host:2: {bytes} bytes")),
                "{text}"
            );
            assert!(text.contains("available"), "{text}");
        }
    }
}

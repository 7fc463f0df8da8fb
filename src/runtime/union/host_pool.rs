//! Host memory that was released and is used again.
//!
//! To pin a page takes as long as to copy it, and to release pinned memory, drivers wait for
//! all that their devices do. A node of a cluster takes and releases memory for each block,
//! so what nobody uses any more is kept for the next allocation of about that size. What is
//! kept and what is used are together never more than what was used at once before, or is
//! now.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::codelet::HostMemoryId;
use crate::runtime::{HostRegion, RuntimeError};

/// Smaller sizes are not told apart.
const LEAST: u64 = 4096;
/// Sizes from one power of two to the next.
const CLASSES: u64 = 8;
/// From here on sizes are multiples of this: so large ones waste little.
const LARGE: u64 = 2 << 20;

/// The memory that is kept.
#[derive(Default)]
pub(super) struct HostPool(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// The oldest first.
    unused: Vec<Block>,
    unused_bytes: u64,
    used_bytes: u64,
    most_used: u64,
}

/// Memory of one of the sizes.
struct Block {
    address: NonNull<u8>,
    bytes: u64,
    _keeper: Arc<dyn Send + Sync>,
}

// SAFETY: a block is an address and what keeps it mapped; its bytes are reached by nobody
// while it is kept.
unsafe impl Send for Block {}
// SAFETY: as above; nothing is done through a shared reference.
unsafe impl Sync for Block {}

/// A block in use, which returns when the last command that uses it has ended.
struct InUse {
    /// `Some` until it is dropped.
    block: Option<Block>,
    pool: Arc<HostPool>,
}

impl Drop for InUse {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            let mut kept = self.pool.lock();
            kept.used_bytes -= block.bytes;
            kept.unused_bytes += block.bytes;
            kept.unused.push(block);
        }
    }
}

impl HostPool {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory of `bytes` bytes with unspecified contents: kept memory, or else what `make`
    /// allocates.
    pub(super) fn allocate(
        self: &Arc<Self>,
        bytes: u64,
        mut make: impl FnMut(u64) -> Result<HostRegion, RuntimeError>,
    ) -> Result<HostRegion, RuntimeError> {
        let size = size_of(bytes);
        let (known, surplus) = self.lock().take(size);
        // Drivers take their time for it.
        drop(surplus);
        let block = match known {
            Some(block) => block,
            None => {
                let made = make(size).or_else(|error| match self.release() {
                    true => make(size),
                    false => Err(error),
                });
                let made = made.inspect_err(|_| self.lock().used_bytes -= size)?;
                Block {
                    address: made.address,
                    bytes: size,
                    _keeper: made.keeper,
                }
            }
        };
        let mut kept = self.lock();
        kept.most_used = kept.most_used.max(kept.used_bytes);
        drop(kept);
        Ok(HostRegion {
            id: HostMemoryId::fresh(),
            address: block.address,
            bytes,
            keeper: Arc::new(InUse {
                block: Some(block),
                pool: Arc::clone(self),
            }),
        })
    }

    /// Returns all that is kept to its drivers. Whether there was any.
    fn release(&self) -> bool {
        let mut kept = self.lock();
        kept.unused_bytes = 0;
        let unused = std::mem::take(&mut kept.unused);
        drop(kept);
        !unused.is_empty()
    }
}

impl Kept {
    /// A block of this size, counted as used, if there is one, and otherwise those that
    /// must go before it is allocated.
    fn take(&mut self, size: u64) -> (Option<Block>, Vec<Block>) {
        self.used_bytes += size;
        let most = self.most_used.max(self.used_bytes);
        if let Some(last) = self.unused.iter().rposition(|block| block.bytes == size) {
            self.unused_bytes -= size;
            return (Some(self.unused.remove(last)), Vec::new());
        }
        let mut surplus = 0;
        while self.used_bytes + self.unused_bytes > most && surplus < self.unused.len() {
            self.unused_bytes -= self.unused[surplus].bytes;
            surplus += 1;
        }
        (None, self.unused.drain(..surplus).collect())
    }
}

/// The size of a block for so many bytes.
fn size_of(bytes: u64) -> u64 {
    let bytes = bytes.max(LEAST);
    let step = (bytes.next_power_of_two() / 2 / CLASSES).clamp(1, LARGE);
    bytes.checked_next_multiple_of(step).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Bytes that are allocated, and how often something was.
    #[derive(Default)]
    struct Driver {
        bytes: AtomicU64,
        calls: AtomicU64,
    }

    struct Memory(Arc<Driver>, u64, #[expect(dead_code)] Vec<u64>);

    impl Drop for Memory {
        fn drop(&mut self) {
            self.0.bytes.fetch_sub(self.1, Ordering::Relaxed);
        }
    }

    fn region(driver: &Arc<Driver>, bytes: u64) -> HostRegion {
        driver.bytes.fetch_add(bytes, Ordering::Relaxed);
        driver.calls.fetch_add(1, Ordering::Relaxed);
        let mut words = vec![0u64; (bytes / 8) as usize];
        HostRegion {
            id: HostMemoryId::fresh(),
            address: NonNull::new(words.as_mut_ptr().cast()).unwrap(),
            bytes,
            keeper: Arc::new(Memory(Arc::clone(driver), bytes, words)),
        }
    }

    #[test]
    fn memory_is_used_again_when_no_command_uses_it() {
        let (driver, pool) = (Arc::new(Driver::default()), Arc::new(HostPool::default()));
        let allocate = |bytes| {
            pool.allocate(bytes, |size| Ok(region(&driver, size)))
                .unwrap()
        };
        let first = allocate(100_000);
        assert_eq!(first.bytes, 100_000);
        // A command that uses it.
        let command = first.clone();
        let address = first.address;
        drop(first);
        let second = allocate(100_000);
        assert_ne!(second.address, address, "a command still uses the first");
        drop(command);
        let third = allocate(100_500);
        assert_eq!(third.address, address);
        assert_eq!(driver.calls.load(Ordering::Relaxed), 2);
        drop((second, third));
        drop(pool);
        assert_eq!(driver.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn no_more_is_kept_than_was_used_at_once() {
        let (driver, pool) = (Arc::new(Driver::default()), Arc::new(HostPool::default()));
        let held = || driver.bytes.load(Ordering::Relaxed);
        let allocate = |bytes| {
            pool.allocate(bytes, |size| Ok(region(&driver, size)))
                .unwrap()
        };
        let both = [allocate(1 << 20), allocate(2 << 20)];
        drop(both);
        assert_eq!(held(), 3 << 20);
        // Another size: the oldest block goes.
        let large = allocate(3 << 20);
        assert_eq!(held(), 3 << 20);
        drop(large);
        let small = allocate(1 << 16);
        assert_eq!(held(), 1 << 16);
        drop(small);
    }

    #[test]
    fn what_is_kept_goes_before_memory_runs_out() {
        let (driver, pool) = (Arc::new(Driver::default()), Arc::new(HostPool::default()));
        let limited = |size: u64| match driver.bytes.load(Ordering::Relaxed) + size > 4 << 20 {
            true => Err(RuntimeError::NoData),
            false => Ok(region(&driver, size)),
        };
        let [one, two] = [(); 2].map(|()| pool.allocate(2 << 20, limited).unwrap());
        drop(one);
        // Kept and used are no more than before, but the driver has less.
        let three = pool.allocate(1 << 20, limited).unwrap();
        assert!(pool.allocate(4 << 20, limited).is_err());
        drop((two, three));
        assert_eq!(pool.allocate(4 << 20, limited).unwrap().bytes, 4 << 20);
    }

    #[test]
    fn sizes_waste_little() {
        for bytes in [
            1,
            4096,
            5000,
            100_000,
            1 << 20,
            (1 << 20) + 1,
            3_000_000_000,
        ] {
            let size = size_of(bytes);
            assert!(
                size >= bytes && size <= (bytes + bytes / CLASSES).max(LEAST),
                "{bytes}"
            );
            assert!(size - bytes < LARGE);
            assert_eq!(size_of(size), size);
        }
    }
}

//! A memory object's copy in host memory.

use std::ptr;

use opencl_sys::CL_OUT_OF_HOST_MEMORY;

use crate::pinned::Pinned;
use crate::status::Fallible;

/// Host memory: pages of our own, what a driver has pinned, or a program's.
pub struct HostMemory {
    address: *mut u8,
    /// Bytes to unmap; 0 for others than pages of our own.
    mapped: usize,
    _pinned: Option<Pinned>,
}

// SAFETY: an address; whoever uses the bytes is ordered by events.
unsafe impl Send for HostMemory {}

impl HostMemory {
    /// Pages of zeros, which take memory when they are first written.
    pub fn new(bytes: usize) -> Fallible<Self> {
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: asks for new pages.
        let address = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0) };
        if address == libc::MAP_FAILED {
            return Err(CL_OUT_OF_HOST_MEMORY);
        }
        Ok(Self {
            address: address.cast(),
            mapped: bytes,
            _pinned: None,
        })
    }

    pub fn pinned(memory: Pinned) -> Self {
        Self {
            address: memory.address(),
            mapped: 0,
            _pinned: Some(memory),
        }
    }

    /// A program's memory.
    pub fn borrowed(address: *mut u8) -> Self {
        Self {
            address,
            mapped: 0,
            _pinned: None,
        }
    }

    pub fn address(&self) -> *mut u8 {
        self.address
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if self.mapped > 0 {
            // SAFETY: pages of `new`, which nobody uses any more.
            unsafe { libc::munmap(self.address.cast(), self.mapped) };
        }
    }
}

//! Buffers of pdawl that the library holds for a while.

use pdawl_core::cluster::wire::plugin::abi::{self, Buffer, Host};

use crate::call::Failure;

/// A buffer that is given back when it is dropped.
pub struct Owned {
    buffer: Buffer,
    host: Host,
}

impl Owned {
    /// A buffer that pdawl hands over.
    ///
    /// # Safety
    /// The buffer is pdawl's, and nobody else gives it back. It is dropped within a call
    /// from pdawl.
    pub unsafe fn new(buffer: Buffer, host: Host) -> Self {
        Self { buffer, host }
    }

    /// A new buffer.
    pub fn allocate(size: usize, host: Host) -> Result<Self, Failure> {
        let mut buffer = Buffer::NONE;
        // SAFETY: the host's functions are valid during a call from pdawl.
        match unsafe { (host.allocate)(host.context, size, &raw mut buffer) } {
            abi::OK => Ok(Self { buffer, host }),
            _ => Err(Failure::new(format!(
                "there is no memory for a message of {size} bytes; use a machine with more, or \
                 smaller work"
            ))),
        }
    }

    /// How many bytes it has.
    pub fn size(&self) -> usize {
        self.buffer.size
    }

    /// A pointer to the byte at this place, which may be the end.
    pub fn at(&self, place: usize) -> *mut u8 {
        assert!(place <= self.buffer.size, "a place beyond the buffer");
        // SAFETY: the place is within the buffer or at its end.
        unsafe { self.buffer.bytes.add(place) }
    }

    /// Forgets the bytes behind this size.
    pub fn truncate(&mut self, size: usize) {
        self.buffer.size = self.buffer.size.min(size);
    }

    /// Hands the buffer over to pdawl.
    pub fn into_buffer(self) -> Buffer {
        let buffer = self.buffer;
        std::mem::forget(self);
        buffer
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the promise of `new`, or the buffer is from `allocate`.
        unsafe { (self.host.release)(self.host.context, self.buffer.owner) };
    }
}

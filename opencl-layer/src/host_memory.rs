//! A memory object's copy in host memory, and host memory that a driver has pinned.

use std::collections::VecDeque;
use std::ptr;
use std::sync::Arc;

use opencl_sys::{
    CL_MAP_READ, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_OUT_OF_HOST_MEMORY, CL_TRUE,
};

use crate::call::enqueue;
use crate::domain::Own;
use crate::lock::{Mutex, TRANSIT};
use crate::native::Native;
use crate::own_queue::{OwnQueue, Site};
use crate::status::{Fallible, driver_object};

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

// Host memory that a driver has pinned.
//
// A driver waits for a write's wait list before it reads such memory, and copies it without
// a processor. The driver may keep as much of a device's memory for it (NVIDIA's does).

/// Pinned memory, which is mapped as long as it lives.
pub struct Pinned {
    address: *mut u8,
    queue: OwnQueue,
    mem: Own,
}

// SAFETY: drivers' handles may be used by every thread, and events order the uses of the
// bytes.
unsafe impl Send for Pinned {}

impl Pinned {
    /// So many bytes, pinned for all devices of a driver's context.
    pub fn new(site: Site, size: usize) -> Fallible<Self> {
        let mem = site
            .domain
            .buffer(CL_MEM_ALLOC_HOST_PTR, size, ptr::null_mut())?;
        let (table, queue) = (site.domain.table, OwnQueue::new(site)?);
        let (access, none, event) = (CL_MAP_READ | CL_MAP_WRITE, ptr::null(), ptr::null_mut());
        let (at, of) = (queue.handle(), mem.handle());
        let address = driver_object!(
            table,
            clEnqueueMapBuffer(at, of, CL_TRUE, access, 0, size, 0, none, event)
        )?;
        let address = address.cast();
        Ok(Self {
            address,
            queue,
            mem,
        })
    }

    pub fn address(&self) -> *mut u8 {
        self.address
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let (mem, address) = (self.mem.handle(), self.address.cast());
        let _ = enqueue!(&self.queue.now(), clEnqueueUnmapMemObject(mem, address));
        let _ = self.queue.finish();
    }
}

// Pinned memory through which bytes go from device to device.
//
// It is made in pieces, which a context keeps: pinning takes a driver 0.7 ms and more. A
// copy has its bytes there for itself until it has ended, so that no copy waits for
// another that the program has not ordered before it.

/// The pinned memory of a driver's context.
#[derive(Default)]
pub struct Transit {
    pieces: Mutex<Vec<Piece>, TRANSIT>,
}

struct Piece {
    memory: Pinned,
    size: usize,
    /// Where the next copy's bytes go.
    next: usize,
    /// The commands that use it, in the order in which they were enqueued.
    users: VecDeque<Arc<Native>>,
}

/// Pinning so much takes NVIDIA's driver as long as pinning 4 KiB.
const SMALLEST: usize = 2 << 20;
/// The size of all pieces, as drivers keep as much of a device's memory.
const MOST: usize = 64 << 20;
/// Copies begin at multiples of it.
const ALIGNMENT: usize = 256;

impl Transit {
    /// Has `copy` enqueue commands that use `size` bytes of pinned memory and that it adds
    /// to the users. `None` if there is no room for so many.
    pub fn through<T>(
        &self,
        site: Site,
        size: usize,
        copy: impl FnOnce(*mut u8, &mut VecDeque<Arc<Native>>) -> Fallible<T>,
    ) -> Fallible<Option<T>> {
        let mut pieces = self.pieces.lock();
        let found = match pieces.iter_mut().position(|piece| piece.has_room(size)) {
            Some(found) => found,
            None => {
                let new = size.max(SMALLEST);
                let all: usize = pieces.iter().map(|piece| piece.size).sum();
                if all + new > MOST {
                    return Ok(None);
                }
                let Ok(memory) = Pinned::new(site, new) else {
                    return Ok(None);
                };
                pieces.push(Piece {
                    memory,
                    size: new,
                    next: 0,
                    users: VecDeque::new(),
                });
                pieces.len() - 1
            }
        };
        let piece = &mut pieces[found];
        let address = piece.memory.address().wrapping_add(piece.next);
        piece.next += size.next_multiple_of(ALIGNMENT);
        copy(address, &mut piece.users).map(Some)
    }
}

impl Drop for Transit {
    /// Gives all memory back, once what uses it has ended.
    fn drop(&mut self) {
        for piece in self.pieces.get_mut().drain(..) {
            for native in &piece.users {
                let _ = native.wait();
            }
        }
    }
}

impl Piece {
    fn has_room(&mut self, size: usize) -> bool {
        while self
            .users
            .front()
            .is_some_and(|native| !native.is_pending())
        {
            self.users.pop_front();
        }
        if self.users.is_empty() {
            self.next = 0;
        }
        self.next + size <= self.size
    }
}

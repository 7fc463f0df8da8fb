//! Pinned memory through which bytes go from device to device.
//!
//! It is made in pieces, which a context keeps: pinning takes a driver 0.7 ms and more. A
//! copy has its bytes there for itself until it has ended, so that no copy waits for
//! another that the program has not ordered before it.

use std::collections::VecDeque;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use opencl_sys::{
    CL_MAP_READ, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_TRUE, cl_command_queue, cl_device_id,
    cl_mem,
};

use crate::context::Domain;
use crate::native::Native;
use crate::status::{Fallible, driver, driver_object};

/// The pinned memory of a driver's context.
#[derive(Default)]
pub struct Transit {
    pieces: Mutex<Vec<Piece>>,
}

/// A piece of pinned memory, which is mapped as long as it lives.
struct Piece {
    table: &'static opencl_sys::cl_icd::cl_icd_dispatch,
    mem: cl_mem,
    queue: cl_command_queue,
    address: *mut u8,
    size: usize,
    /// Where the next copy's bytes go.
    next: usize,
    /// The commands that use it, in their order.
    users: VecDeque<Arc<Native>>,
}

// SAFETY: drivers' handles may be used by every thread, and events order the uses of the
// bytes.
unsafe impl Send for Piece {}

/// Pinning so much takes NVIDIA's driver as long as pinning 4 KiB.
const SMALLEST: usize = 2 << 20;
/// Copies begin at multiples of it.
const ALIGNMENT: usize = 256;

impl Transit {
    /// Has `copy` enqueue commands that use `size` bytes of pinned memory, and that it adds
    /// to the users.
    pub fn through<T>(
        &self,
        domain: &Domain,
        device: cl_device_id,
        size: usize,
        copy: impl FnOnce(*mut u8, &mut VecDeque<Arc<Native>>) -> Fallible<T>,
    ) -> Fallible<T> {
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match pieces.iter_mut().position(|piece| piece.has_room(size)) {
            Some(found) => found,
            None => {
                pieces.push(Piece::new(domain, device, size.max(SMALLEST))?);
                pieces.len() - 1
            }
        };
        let piece = &mut pieces[found];
        let address = piece.address.wrapping_add(piece.next);
        piece.next += size.next_multiple_of(ALIGNMENT);
        copy(address, &mut piece.users)
    }
}

impl Transit {
    /// Gives all memory back, once what uses it has ended.
    pub fn release(&mut self) {
        self.pieces
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

impl Piece {
    fn new(domain: &Domain, device: cl_device_id, size: usize) -> Fallible<Self> {
        let table = domain.table;
        let mem = driver_object!(
            table,
            clCreateBuffer(domain.context, CL_MEM_ALLOC_HOST_PTR, size, ptr::null_mut())
        )?;
        let mut piece = Self {
            table,
            mem,
            queue: ptr::null_mut(),
            address: ptr::null_mut(),
            size,
            next: 0,
            users: VecDeque::new(),
        };
        piece.queue = driver_object!(table, clCreateCommandQueue(domain.context, device, 0))?;
        let (access, none, event) = (CL_MAP_READ | CL_MAP_WRITE, ptr::null(), ptr::null_mut());
        piece.address = driver_object!(
            table,
            clEnqueueMapBuffer(piece.queue, mem, CL_TRUE, access, 0, size, 0, none, event)
        )?
        .cast();
        Ok(piece)
    }

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

impl Drop for Piece {
    fn drop(&mut self) {
        for native in &self.users {
            let _ = native.wait();
        }
        if !self.address.is_null() {
            let (address, none, event) = (self.address.cast(), ptr::null(), ptr::null_mut());
            let _ = driver!(
                self.table,
                clEnqueueUnmapMemObject(self.queue, self.mem, address, 0, none, event)
            );
        }
        if !self.queue.is_null() {
            let _ = driver!(self.table, clFinish(self.queue));
            let _ = driver!(self.table, clReleaseCommandQueue(self.queue));
        }
        let _ = driver!(self.table, clReleaseMemObject(self.mem));
    }
}

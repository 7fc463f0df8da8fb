//! Answers to the `clGet...Info` functions.

use std::ptr;

use libc::c_void;
use opencl_sys::CL_INVALID_VALUE;

use crate::status::Fallible;

/// Where a program wants an answer: a buffer with its size, and where the answer's size
/// is written. Both are optional.
pub struct Answer {
    capacity: usize,
    value: *mut c_void,
    size: *mut usize,
}

impl Answer {
    /// # Safety
    /// `value` is null or valid for `capacity` written bytes; `size` is null or valid
    /// for a write.
    pub unsafe fn to(capacity: usize, value: *mut c_void, size: *mut usize) -> Self {
        Self {
            capacity,
            value,
            size,
        }
    }

    /// Answers with bytes.
    pub fn bytes(self, bytes: &[u8]) -> Fallible<()> {
        if !self.value.is_null() {
            if self.capacity < bytes.len() {
                return Err(CL_INVALID_VALUE);
            }
            // SAFETY: the buffer has `capacity` bytes, and a program's buffer does not
            // overlap ours.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.value.cast(), bytes.len()) };
        }
        if !self.size.is_null() {
            // SAFETY: promised by `to`. Programs pass numbers of 32 bits, too, which no
            // driver complains of.
            unsafe { self.size.write_unaligned(bytes.len()) };
        }
        Ok(())
    }

    /// Answers with one plain value: a number or a handle.
    pub fn value<T: Copy>(self, value: T) -> Fallible<()> {
        self.list(&[value])
    }

    /// Answers with plain values.
    pub fn list<T: Copy>(self, values: &[T]) -> Fallible<()> {
        // SAFETY: numbers and pointers, as all callers pass, have no padding.
        let bytes = unsafe {
            std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values))
        };
        self.bytes(bytes)
    }

    /// Answers with a text that ends in a null byte.
    pub fn text(self, text: &str) -> Fallible<()> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        self.bytes(&bytes)
    }

    /// Lets a driver answer: `ask` gets the capacity, the buffer and where the size goes.
    pub fn pass(
        self,
        ask: impl FnOnce(usize, *mut c_void, *mut usize) -> opencl_sys::cl_int,
    ) -> Fallible<()> {
        crate::status::check(ask(self.capacity, self.value, self.size))
    }
}

//! Answers to the `clGet...Info` functions.

use std::ptr;

use libc::c_void;
use opencl_sys::{CL_INVALID_VALUE, cl_int, cl_uint};

use crate::boundary::status;
use crate::handle::{Kind, Ref};
use crate::status::{Fallible, check};

/// A kind of object that answers to a function for questions; `Question` tells its functions
/// apart, if it has several.
pub trait Answers<Question = ()>: Kind {
    fn answer(object: &Ref<Self>, what: cl_uint, answer: Answer) -> Fallible<()>;
}

/// The function of a kind of objects for questions.
///
/// # Safety
/// As OpenCL promises about both pointers.
pub unsafe extern "C" fn get_info<T: Answers<Question>, Question>(
    handle: *mut c_void,
    what: cl_uint,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> cl_int {
    status(|| {
        let object = Ref::<T>::of(handle)?;
        // SAFETY: promised by the caller.
        let answer = unsafe { Answer::to(size, value, needed) };
        T::answer(&object, what, answer)
    })
}

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

    /// Answers with the handle of an object, null if there is none.
    pub fn handle<T: Kind>(self, object: Option<&Ref<T>>) -> Fallible<()> {
        self.value(object.map_or(ptr::null_mut(), Ref::handle))
    }

    /// Answers with the handles of objects.
    pub fn handles<T: Kind>(self, objects: &[Ref<T>]) -> Fallible<()> {
        self.list(&objects.iter().map(Ref::handle).collect::<Vec<_>>())
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

    /// Fills the lists of bytes whose addresses the program gives, but for null ones. The program
    /// has asked for their lengths before.
    pub fn into_lists(self, lists: impl ExactSizeIterator<Item = Vec<u8>>) -> Fallible<()> {
        let bytes = size_of::<*mut u8>() * lists.len();
        if !self.value.is_null() {
            if self.capacity < bytes {
                return Err(CL_INVALID_VALUE);
            }
            for (index, list) in lists.enumerate() {
                // SAFETY: there is an address for each list.
                let to = unsafe { *self.value.cast::<*mut u8>().add(index) };
                if !to.is_null() {
                    // SAFETY: the program asked for the list's length before.
                    unsafe { ptr::copy_nonoverlapping(list.as_ptr(), to, list.len()) };
                }
            }
        }
        if !self.size.is_null() {
            // SAFETY: promised by `to`.
            unsafe { *self.size = bytes };
        }
        Ok(())
    }

    /// Lets a driver answer: `ask` gets the capacity, the buffer and where the size goes.
    pub fn pass(self, ask: impl FnOnce(usize, *mut c_void, *mut usize) -> cl_int) -> Fallible<()> {
        check(ask(self.capacity, self.value, self.size))
    }
}

//! What pdawl does for a library: it owns all buffers, and keeps the reason of a failure.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

use super::abi::{Buffer, FAILED, Host, OK};
use crate::cluster::wire::memory;

/// The reason that the library gave last.
#[derive(Default)]
pub struct Reason(Mutex<String>);

impl Reason {
    /// The functions for the library. They are valid as long as this.
    pub fn host(&self) -> Host {
        Host {
            context: std::ptr::from_ref(self).cast_mut().cast(),
            allocate,
            release,
            explain,
        }
    }

    /// Takes the reason.
    pub fn take(&self) -> String {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::take(&mut *text) {
            none if none.is_empty() => "no reason given".to_owned(),
            reason => reason,
        }
    }
}

/// Hands bytes over to the library, until it releases them.
pub fn hand_over(bytes: Vec<u8>) -> Buffer {
    let mut owner = Box::new(bytes);
    Buffer {
        bytes: owner.as_mut_ptr(),
        size: owner.len(),
        owner: Box::into_raw(owner).cast(),
    }
}

/// Takes the buffer of an arrival; nothing if the library claims more than it got.
///
/// # Safety
/// The buffer is from [`allocate`] and the library uses it no more.
pub unsafe fn take_over(buffer: &Buffer) -> Option<Vec<u8>> {
    if buffer.owner.is_null() {
        return None;
    }
    // SAFETY: an owner comes from `hand_over`, once.
    let mut bytes = *unsafe { Box::from_raw(buffer.owner.cast::<Vec<u8>>()) };
    if buffer.size > bytes.len() {
        return None;
    }
    bytes.truncate(buffer.size);
    Some(bytes)
}

unsafe extern "C" fn allocate(_context: *mut c_void, size: usize, buffer: *mut Buffer) -> c_int {
    let Some(bytes) = memory::room(size) else {
        return FAILED;
    };
    // SAFETY: the library passes a place for a buffer.
    unsafe { buffer.write(hand_over(bytes)) };
    OK
}

unsafe extern "C" fn release(_context: *mut c_void, owner: *mut c_void) {
    // SAFETY: an owner comes from `hand_over`, and the library releases it once.
    memory::keep(*unsafe { Box::from_raw(owner.cast::<Vec<u8>>()) });
}

unsafe extern "C" fn explain(context: *mut c_void, text: *const c_char) {
    // SAFETY: the context is that of `Reason::host`, and the text ends with a zero.
    let (reason, text) = unsafe { (&*context.cast::<Reason>(), CStr::from_ptr(text)) };
    let mut kept = reason.0.lock().unwrap_or_else(PoisonError::into_inner);
    *kept = text.to_string_lossy().into_owned();
}

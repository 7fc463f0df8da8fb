//! What a program wants reported when one of its objects is gone.
//!
//! A memory object is gone when every driver has ended the commands that use it. Each
//! driver's object therefore keeps the list of callbacks alive until its driver says that
//! it is gone; the last owner calls the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use libc::c_void;
use opencl_sys::cl_icd::cl_icd_dispatch;
use opencl_sys::cl_mem;

use crate::lock::{ENDING, Mutex};
use crate::status::{Fallible, check, driver};
use crate::worker::CALLBACKS;

/// A program's function for the end of an object.
pub type Ended = unsafe extern "C" fn(*mut c_void, *mut c_void);

/// The callbacks for the end of one object.
#[derive(Default)]
pub struct Ending {
    handle: AtomicUsize,
    wanted: Mutex<Vec<(Ended, usize)>, ENDING>,
}

impl Ending {
    /// Adds a callback.
    pub fn call(&self, handle: *mut c_void, function: Ended, data: *mut c_void) {
        self.handle.store(handle as usize, Ordering::Release);
        let mut wanted = self.wanted.lock();
        wanted.push((function, data as usize));
    }

    /// Whether anybody wants a report.
    pub fn is_wanted(&self) -> bool {
        !self.wanted.lock().is_empty()
    }

    /// Has a driver's memory object keep the callbacks back until it is gone.
    pub fn after(this: &Arc<Self>, table: &'static cl_icd_dispatch, mem: cl_mem) -> Fallible<()> {
        let data = Arc::into_raw(Arc::clone(this)).cast_mut();
        let set = driver!(
            table,
            clSetMemObjectDestructorCallback(mem, Some(gone), data.cast())
        );
        check(set).inspect_err(|_| {
            // SAFETY: the driver did not take the pointer.
            drop(unsafe { Arc::from_raw(data) });
        })
    }
}

unsafe extern "C" fn gone(_mem: cl_mem, data: *mut c_void) {
    // SAFETY: the pointer that `after` gave away; drivers call once.
    drop(unsafe { Arc::from_raw(data.cast_const().cast::<Ending>()) });
}

impl Drop for Ending {
    fn drop(&mut self) {
        let wanted = self.wanted.get_mut();
        let handle = self.handle.load(Ordering::Acquire);
        // The last one set is called first.
        for (function, data) in wanted.drain(..).rev() {
            // SAFETY: the program gave the function for this moment. The object is gone,
            // so the handle is an identifier only.
            CALLBACKS.run(move || unsafe { function(handle as *mut c_void, data as *mut c_void) });
        }
    }
}

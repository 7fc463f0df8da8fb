//! Owners of OpenCL objects, each of one reference.
//!
//! opencl3's own types panic in `drop` when a release fails, as it does on a lost
//! device; these ignore the error.

use std::time::{Duration, Instant};

use cl3::event::{CL_EVENT_REFERENCE_COUNT, get_event_info};
use cl3::types::{cl_command_queue, cl_context, cl_event, cl_kernel, cl_mem, cl_program};

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $raw:ty, $release:path) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(super) struct $name($raw);

        impl $name {
            /// Takes over one reference to a live object.
            pub(super) fn new(raw: $raw) -> Self {
                Self(raw)
            }

            /// The object; valid as long as `self`.
            pub(super) fn raw(&self) -> $raw {
                self.0
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: the reference taken over in `new` is released once.
                // A failure leaves the object to the driver.
                let _ = unsafe { $release(self.0) };
            }
        }

        // SAFETY: OpenCL objects may be used from any thread.
        unsafe impl Send for $name {}
    };
}

macro_rules! shared {
    ($($name:ident),*) => {
        $(
            // SAFETY: every OpenCL call on this kind of object is thread-safe
            // (OpenCL 1.2, appendix A.2); only setting a kernel's arguments is not.
            unsafe impl Sync for $name {}
        )*
    };
}

handle!(
    /// A context over devices of one platform.
    Context, cl_context, cl3::context::release_context
);
handle!(
    /// A command queue.
    Queue, cl_command_queue, cl3::command_queue::release_command_queue
);
handle!(
    /// A buffer.
    Mem, cl_mem, cl3::memory::release_mem_object
);
handle!(
    /// A command's event.
    Event, cl_event, cl3::event::release_event
);
handle!(
    /// A program.
    Program, cl_program, cl3::program::release_program
);
handle!(
    /// A kernel. Its arguments are state, so it belongs to one thread at a time.
    Kernel, cl_kernel, cl3::kernel::release_kernel
);

shared!(Context, Queue, Mem, Event, Program);

/// How long drivers may take to release ended events. A driver that counts
/// references differently costs this once when a backend is closed.
pub(super) const RELEASE_TIMEOUT: Duration = Duration::from_millis(20);

/// Waits until the driver holds no reference to these ended events. A driver's
/// thread releases an event a moment after its callback, and with it what the event
/// refers to.
pub(super) fn wait_for_release<'a>(events: impl IntoIterator<Item = &'a Event>) {
    let deadline = Instant::now() + RELEASE_TIMEOUT;
    let held = |event: &Event| {
        get_event_info(event.raw(), CL_EVENT_REFERENCE_COUNT)
            .is_ok_and(|count| u32::from(count) > 1)
    };
    for event in events {
        while held(event) && Instant::now() < deadline {
            std::thread::yield_now();
        }
    }
}

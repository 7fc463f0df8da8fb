//! An event of one context, made into something to wait for in another.
//!
//! A wait list may only hold events of its queue's own context, and a context
//! holds devices of one platform. The bridge is a user event that is set when
//! the foreign event ends.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cl3::event::{CL_COMPLETE, create_user_event, set_event_callback, set_user_event_status};
use cl3::types::{cl_event, cl_int};

use super::handle::{Context, Event};

/// A user event of `context` that ends, and fails, with `foreign`.
pub(super) fn bridge(foreign: &Event, context: &Context) -> Result<Arc<Event>, cl_int> {
    let user = Arc::new(Event::new(create_user_event(context.raw())?));
    let data = Arc::into_raw(Arc::clone(&user));
    let set = set_event_callback(
        foreign.raw(),
        CL_COMPLETE,
        on_end,
        data.cast_mut().cast::<c_void>(),
    );
    if let Err(code) = set {
        // SAFETY: no callback has the pointer, so its reference is still ours.
        drop(unsafe { Arc::from_raw(data) });
        return Err(code);
    }
    Ok(user)
}

extern "C" fn on_end(_event: cl_event, code: cl_int, data: *mut c_void) {
    // A panic must not reach the driver: it would abort the process.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: `data` is the reference that `bridge` gave away, and the
        // driver calls once.
        let user = unsafe { Arc::from_raw(data.cast_const().cast::<Event>()) };
        let _ = set_user_event_status(user.raw(), code.min(CL_COMPLETE));
    }));
}

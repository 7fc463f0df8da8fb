//! A user event that stands for an event of another context.
//!
//! A wait list may only hold events of its queue's own context, and a context
//! holds devices of one platform. The user event is set when the foreign event
//! ends. It is set complete even after a failure, because drivers disagree on user
//! events that fail (PoCL never ends commands that wait for them). The failure is
//! recorded in [`Failures`] instead, and reaches the waiting command's completion
//! from there.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cl3::event::{CL_COMPLETE, create_user_event, set_event_callback, set_user_event_status};
use cl3::types::{cl_event, cl_int};

use super::failure::Failures;
use super::handle::{Context, Event};
use crate::runtime::EventId;

/// The data of the foreign event's callback.
pub(super) struct BridgedEvent {
    pub id: EventId,
    pub user: Arc<Event>,
    pub failures: Arc<Failures>,
}

impl BridgedEvent {
    /// The foreign event ended with `code`.
    pub(super) fn end(self, code: cl_int) {
        if code < 0 {
            self.failures.note(self.id);
        }
        // In a released context no command waits.
        let _ = set_user_event_status(self.user.raw(), CL_COMPLETE);
    }
}

/// A user event of `context` that ends with `foreign`, the event of `id`.
pub(super) fn bridge(
    id: EventId,
    foreign: &Event,
    context: &Context,
    failures: &Arc<Failures>,
) -> Result<Arc<Event>, cl_int> {
    let user = Arc::new(Event::new(create_user_event(context.raw())?));
    let data = Box::into_raw(Box::new(BridgedEvent {
        id,
        user: Arc::clone(&user),
        failures: Arc::clone(failures),
    }));
    if let Err(code) = set_event_callback(foreign.raw(), CL_COMPLETE, on_end, data.cast()) {
        // SAFETY: no callback has the pointer, so this is its only owner.
        drop(unsafe { Box::from_raw(data) });
        return Err(code);
    }
    Ok(user)
}

extern "C" fn on_end(_event: cl_event, code: cl_int, data: *mut c_void) {
    // A panic must not reach the driver: it would abort the process.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: `data` is the box that `bridge` gave away, and the driver
        // calls once.
        let bridged = unsafe { Box::from_raw(data.cast::<BridgedEvent>()) };
        bridged.end(code);
    }));
}

//! Events: how commands get them, what they tell of a command's end and its times, and how one
//! context waits for those of another.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use cl3::error_codes::{DLOPEN_FUNCTION_NOT_AVAILABLE, DLOPEN_RUNTIME_LOAD_FAILED};
use cl3::event::{
    CL_COMPLETE, CL_EVENT_COMMAND_EXECUTION_STATUS, CL_PROFILING_COMMAND_END,
    CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_SUBMIT, create_user_event, get_event_info,
    get_event_profiling_info, set_event_callback, set_user_event_status, wait_for_events,
};
use cl3::types::{cl_event, cl_int};
use cl3::{OpenClRuntime, load_library};
use crossbeam_channel::Sender;
use opencl3::error_codes::CL_DEVICE_NOT_AVAILABLE;

use super::device::OpenDevice;
use super::failure::silently;
use super::handle::{Context, Event};
use crate::runtime::device_clock::Stamps;
use crate::runtime::{Completion, EventId, Nanos};

/// Calls a function of the driver's library that enqueues a command, with or
/// without an event. The functions of the `cl3` crate always create one.
pub(super) fn enqueue(
    has_event: bool,
    function: impl FnOnce(&OpenClRuntime, *mut cl_event) -> Option<cl_int>,
) -> Result<Option<Arc<Event>>, cl_int> {
    let library = load_library()
        .as_ref()
        .map_err(|_| DLOPEN_RUNTIME_LOAD_FAILED)?;
    let mut event: cl_event = std::ptr::null_mut();
    let out = match has_event {
        true => &raw mut event,
        false => std::ptr::null_mut(),
    };
    match function(library, out) {
        Some(0) => Ok(has_event.then(|| Arc::new(Event::new(event)))),
        Some(code) => Err(code),
        None => Err(DLOPEN_FUNCTION_NOT_AVAILABLE),
    }
}

/// A wait list as OpenCL takes it: no events, no list.
pub(super) fn list(wait: &[cl_event]) -> (u32, *const cl_event) {
    match wait {
        [] => (0, std::ptr::null()),
        _ => (wait.len() as u32, wait.as_ptr()),
    }
}

/// The times from the begin of one complete command of a profiling queue to the end of another,
/// which may be the same, in nanoseconds of the device's own clock.
pub(super) fn stamps(first: &Event, last: &Event) -> Option<Stamps> {
    let stamp = |event: &Event, name| {
        let stamp = get_event_profiling_info(event.raw(), name);
        stamp.ok().map(u64::from)
    };
    Some(Stamps {
        submitted: stamp(first, CL_PROFILING_COMMAND_SUBMIT)?,
        started: stamp(first, CL_PROFILING_COMMAND_START)?,
        ended: stamp(last, CL_PROFILING_COMMAND_END)?,
    })
}

/// The code with which an event ended, if the driver reports that it has ended or
/// that it is lost.
pub(super) fn ended_with(event: &Event, device: &OpenDevice) -> Option<cl_int> {
    if device.check().is_err() {
        return Some(CL_DEVICE_NOT_AVAILABLE);
    }
    let status = get_event_info(event.raw(), CL_EVENT_COMMAND_EXECUTION_STATUS);
    match status.map(cl_int::from) {
        Ok(code) => (code <= CL_COMPLETE).then_some(code),
        Err(code) => {
            device.mark_lost(&silently("clGetEventInfo", code));
            Some(CL_DEVICE_NOT_AVAILABLE)
        }
    }
}

/// That a command has ended, as a driver's thread tells.
pub(super) struct Told {
    pub event: EventId,
    pub code: cl_int,
    pub at: Nanos,
}

/// What a driver's thread needs to tell that a command has ended.
pub(super) struct Teller {
    pub event: EventId,
    pub epoch: Instant,
    pub told: Sender<Told>,
    pub completions: Sender<Completion>,
    /// What wakes the thread that waits for completions.
    pub wake_up: Completion,
}

impl Teller {
    fn tell(self, code: cl_int) {
        let at = self.epoch.elapsed().as_nanos() as Nanos;
        let event = self.event;
        // The receivers are gone only when the runtime is being dropped.
        let _ = self.told.send(Told { event, code, at });
        let _ = self.completions.send(self.wake_up);
    }

    /// Tells when `event` has ended.
    pub(super) fn watch(self, event: &Event) {
        if let Err((_, teller)) = call_back(event, self, Self::tell) {
            // The command runs all the same, so wait for it here.
            let code = wait_for_events(&[event.raw()]).err();
            teller.tell(code.unwrap_or(CL_COMPLETE));
        }
    }
}

/// A user event of `context` that stands for `foreign`, an event of another one.
///
/// A wait list may only hold events of its queue's own context, and a context holds devices of
/// one platform. The user event is set when the foreign event ends. It is set complete even
/// after a failure, because drivers disagree on user events that fail (PoCL never ends commands
/// that wait for them). The failure reaches the waiting command's completion otherwise.
pub(super) fn bridge(foreign: &Event, context: &Context) -> Result<Arc<Event>, cl_int> {
    let user = Arc::new(Event::new(create_user_event(context.raw())?));
    let called = call_back(foreign, Arc::clone(&user), |user, _| release(&user));
    called.map_err(|(code, _)| code)?;
    Ok(user)
}

/// Lets go what waits for a user event, unless that was done. In a released context nothing waits.
pub(super) fn release(user: &Event) {
    let _ = set_user_event_status(user.raw(), CL_COMPLETE);
}

/// Has the driver call a function with this data, and the code with which an event ended, when it
/// has. Returns the data if it will not.
fn call_back<T: Send + 'static>(
    event: &Event,
    data: T,
    function: fn(T, cl_int),
) -> Result<(), (cl_int, T)> {
    extern "C" fn called<T>(_event: cl_event, code: cl_int, data: *mut c_void) {
        // A panic must not reach the driver: it would abort the process.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: it is the box that was given away, and the driver calls once for the one
            // status that it was registered for.
            let (data, function) = *unsafe { Box::from_raw(data.cast::<(T, fn(T, cl_int))>()) };
            function(data, code);
        }));
    }
    let given = Box::into_raw(Box::new((data, function)));
    set_event_callback(event.raw(), CL_COMPLETE, called::<T>, given.cast()).map_err(|code| {
        // SAFETY: no callback has the pointer, so this is its only owner.
        let (data, _) = *unsafe { Box::from_raw(given) };
        (code, data)
    })
}

//! Turns an OpenCL event into a [`Completion`].
//!
//! Every command with an event has a [`Token`], which the event's callback turns
//! into the completion on a thread of the driver. The callback makes no OpenCL
//! call but the query of the times; the resources of the command return to the
//! backend's thread as an [`Ended`]. If a driver forgets a callback, the backend
//! delivers the token from the same [`TokenCell`]; never twice. Callbacks need no
//! thread for every queue, and are no slower than one that waits for the event.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cl3::error_codes::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
use cl3::event::{CL_COMPLETE, set_event_callback, wait_for_events};
use cl3::types::{cl_event, cl_int};
use crossbeam_channel::Sender;

use super::device::Shared;
use super::failure::{Failures, status_of};
use super::handle::Event;
use super::stamps;
use crate::runtime::{Completion, EventId, Status};

/// A resource that must outlive a command.
pub(super) type KeepAlive = Arc<dyn Send + Sync>;

/// The channels and records that an ended command reports to.
#[derive(Clone)]
pub(super) struct Channels {
    pub completions: Sender<Completion>,
    pub ended: Sender<Ended>,
    pub failures: Arc<Failures>,
}

/// The resources of a command that has ended. The backend's thread drops them,
/// since releasing memory may block in the driver.
pub(super) struct Ended {
    pub event: EventId,
    _timed: Option<[Arc<Event>; 2]>,
    _kernels: Option<[Arc<Event>; 2]>,
    _keeps: Vec<KeepAlive>,
}

/// A completion whose times and status are still to be set.
pub(super) struct Token {
    /// The completion, as it is when all goes well.
    pub completion: Completion,
    /// The commands it waited for.
    pub waits: Vec<EventId>,
    /// The events whose times are the command's, on a queue with profiling. A query
    /// on other queues would be a call in vain.
    pub timed: Option<[Arc<Event>; 2]>,
    /// The events of the first and the last kernel of a mixed series.
    pub kernels: Option<[Arc<Event>; 2]>,
    pub device: Arc<Shared>,
    /// Set once a command of the queue has failed.
    pub poisoned: Arc<AtomicBool>,
    /// When the host was notified of the end of a command of the queue last.
    pub ended: Arc<AtomicU64>,
    pub keep_alive: Vec<KeepAlive>,
    pub channels: Channels,
}

impl Token {
    /// Delivers the completion when `event` has ended.
    pub(super) fn attach(self, event: &Event) -> Arc<TokenCell> {
        let cell = Arc::new(TokenCell::from(self));
        let data = Arc::into_raw(Arc::clone(&cell)).cast_mut();
        if set_event_callback(event.raw(), CL_COMPLETE, on_end, data.cast()).is_err() {
            // SAFETY: no callback has this reference, so it is still owned here.
            drop(unsafe { Arc::from_raw(data) });
            // The command runs all the same, so wait for it here.
            let code = wait_for_events(&[event.raw()]).err().unwrap_or(CL_COMPLETE);
            cell.deliver(code);
        }
        cell
    }

    /// Sends the completion of a command that ended with `code`.
    pub(super) fn deliver(self, code: cl_int) {
        let notified = self.device.clock.now();
        let before = self.ended.swap(notified, Ordering::AcqRel);
        let mut completion = self.completion;
        let stamped = (code == CL_COMPLETE)
            .then_some(self.timed.as_ref())
            .flatten()
            .and_then(|[first, last]| stamps::from_until(first, last));
        if let Some(stamped) = stamped {
            let times = self
                .device
                .clock
                .times(completion.queued, &stamped, notified);
            let kernels = self.kernels.as_ref().and_then(stamps::between);
            if let (Some(stages), Some(kernels)) = (&mut completion.stages, kernels) {
                stages.kernels = self.device.clock.within(&times, kernels);
            }
            completion.submitted = times.submitted;
            completion.started = times.started;
            completion.ended = times.ended;
        } else {
            // A successful command may have run since the one before it ended; a failed one
            // did not.
            let ran = code == CL_COMPLETE;
            completion.submitted = completion.queued;
            let begun = completion.queued.max(before).min(notified);
            completion.started = if ran { begun } else { notified };
            completion.ended = notified;
            if let Some(stages) = &mut completion.stages {
                stages.kernels = (completion.started, notified);
            }
        }
        if code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST && !self.waits.is_empty() {
            // What it waited for says why, perhaps on another device.
            completion.status = Status::Skipped;
        } else if code < 0 {
            completion.status = status_of(code);
        } else if self.poisoned.load(Ordering::Acquire) || self.channels.failures.any(&self.waits) {
            completion.status = Status::Skipped;
        }
        if completion.status != Status::Done {
            self.poisoned.store(true, Ordering::Release);
            self.channels.failures.note(completion.event);
        }
        if let Status::DeviceLost(why) = &mut completion.status {
            *why = self.device.mark_lost(why).to_owned();
        }
        let ended = Ended {
            event: completion.event,
            _timed: self.timed,
            _kernels: self.kernels,
            _keeps: self.keep_alive,
        };
        // The receivers are gone only when the runtime is being dropped.
        let _ = self.channels.completions.send(completion);
        let _ = self.channels.ended.send(ended);
    }
}

/// A token that is delivered once, by the callback or by the backend.
pub(super) struct TokenCell(Mutex<Option<Token>>);

impl From<Token> for TokenCell {
    fn from(token: Token) -> Self {
        Self(Mutex::new(Some(token)))
    }
}

impl TokenCell {
    /// Delivers the token, unless that was done.
    pub(super) fn deliver(&self, code: cl_int) {
        let token = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(token) = token {
            token.deliver(code);
        }
    }
}

/// The driver calls this when a command has ended.
extern "C" fn on_end(_event: cl_event, code: cl_int, data: *mut c_void) {
    // A panic must not reach the driver: it would abort the process.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: `data` is the reference that `attach` gave away, and the
        // driver calls once for the one status it was registered for.
        let cell = unsafe { Arc::from_raw(data.cast_const().cast::<TokenCell>()) };
        cell.deliver(code);
    }));
}

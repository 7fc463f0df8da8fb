//! From an OpenCL event to a [`Completion`].
//!
//! Every command carries a [`Token`], which its event's callback turns into
//! the completion on a thread of the driver's. The callback makes no OpenCL
//! call but the query of the times; what it would have to release goes back to
//! the backend's thread as an [`Ended`]. Should a driver forget a callback, the
//! token can be delivered without, from the same [`Slot`]; never twice. On PoCL a completion came 35 us after
//! its command was enqueued, against 40 us with a thread that waits for the
//! event, and callbacks need no thread for every queue.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cl3::event::{CL_COMPLETE, set_event_callback, wait_for_events};
use cl3::types::{cl_event, cl_int};
use crossbeam_channel::Sender;

use super::clock::Stamps;
use super::device::Shared;
use super::failure::{Failures, status_of};
use super::handle::Event;
use crate::runtime::{Completion, EventId, Status};

/// What must outlive a command.
pub(super) type Keep = Arc<dyn Send + Sync>;

/// Where completions go.
#[derive(Clone)]
pub(super) struct Outlets {
    pub completions: Sender<Completion>,
    pub ended: Sender<Ended>,
    pub failures: Arc<Failures>,
}

/// What a command that has ended no longer needs. The backend's thread drops
/// it, since releasing memory may block in the driver.
pub(super) struct Ended {
    pub event: EventId,
    _timed: Option<[Arc<Event>; 2]>,
    _kernels: Option<[Arc<Event>; 2]>,
    _keeps: Vec<Keep>,
}

/// All that a completion is made of, but the times and the status.
pub(super) struct Token {
    /// The completion, as it is when all goes well.
    pub completion: Completion,
    /// The commands it waited for.
    pub waits: Vec<EventId>,
    /// The events whose times are the command's, on a queue that stamps: asking
    /// for times that are not there is one more call of the driver's.
    pub timed: Option<[Arc<Event>; 2]>,
    /// Those of its first kernel and its last, where it is more than these.
    pub kernels: Option<[Arc<Event>; 2]>,
    pub device: Arc<Shared>,
    /// Set once a command of the queue has failed.
    pub poisoned: Arc<AtomicBool>,
    pub keeps: Vec<Keep>,
    pub outlets: Outlets,
}

impl Token {
    /// Delivers the completion when `event` has ended.
    pub(super) fn attach(self, event: &Event) -> Arc<Slot> {
        let slot = Arc::new(Slot::from(self));
        let data = Arc::into_raw(Arc::clone(&slot)).cast_mut();
        if set_event_callback(event.raw(), CL_COMPLETE, on_end, data.cast()).is_err() {
            // SAFETY: no callback has this reference, so it is still ours.
            drop(unsafe { Arc::from_raw(data) });
            // The command is on its way none the less, so wait for it here.
            let code = wait_for_events(&[event.raw()]).err().unwrap_or(CL_COMPLETE);
            slot.deliver(code);
        }
        slot
    }

    /// Sends the completion of a command that ended with `code`.
    pub(super) fn deliver(self, code: cl_int) {
        let heard = self.device.clock.now();
        let mut completion = self.completion;
        let stamps = (code == CL_COMPLETE)
            .then_some(self.timed.as_ref())
            .flatten()
            .and_then(|[first, last]| Stamps::from_until(first, last));
        if let Some(stamps) = stamps {
            let times = self.device.clock.times(completion.queued, &stamps, heard);
            let kernels = self.kernels.as_ref().and_then(Stamps::between);
            if let (Some(stages), Some(kernels)) = (&mut completion.stages, kernels) {
                stages.kernels = self.device.clock.within(&times, kernels);
            }
            completion.submitted = times.submitted;
            completion.started = times.started;
            completion.ended = times.ended;
        } else {
            // What ran may have run all the while; what failed did not run.
            let ran = code == CL_COMPLETE;
            completion.submitted = completion.queued;
            completion.started = if ran { completion.queued } else { heard };
            completion.ended = heard;
            if let Some(stages) = &mut completion.stages {
                stages.kernels = (completion.started, heard);
            }
        }
        if code < 0 {
            completion.status = status_of(code);
        } else if self.poisoned.load(Ordering::Acquire) || self.outlets.failures.any(&self.waits) {
            completion.status = Status::Skipped;
        }
        if completion.status != Status::Done {
            self.poisoned.store(true, Ordering::Release);
            self.outlets.failures.note(completion.event);
        }
        if let Status::DeviceLost(why) = &mut completion.status {
            *why = self.device.lose(why).to_owned();
        }
        let ended = Ended {
            event: completion.event,
            _timed: self.timed,
            _kernels: self.kernels,
            _keeps: self.keeps,
        };
        // A receiver that is gone has no more interest in completions.
        let _ = self.outlets.completions.send(completion);
        let _ = self.outlets.ended.send(ended);
    }
}

/// A token that is delivered once, by whoever comes first.
pub(super) struct Slot(Mutex<Option<Token>>);

impl From<Token> for Slot {
    fn from(token: Token) -> Self {
        Self(Mutex::new(Some(token)))
    }
}

impl Slot {
    /// Delivers the token, unless that was done.
    pub(super) fn deliver(&self, code: cl_int) {
        let token = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(token) = token {
            token.deliver(code);
        }
    }
}

/// The driver's call when a command has ended.
extern "C" fn on_end(_event: cl_event, code: cl_int, data: *mut c_void) {
    // A panic must not reach the driver: it would abort the process.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: `data` is the reference that `attach` gave away, and the
        // driver calls once for the one status it was registered for.
        let slot = unsafe { Arc::from_raw(data.cast_const().cast::<Slot>()) };
        slot.deliver(code);
    }));
}

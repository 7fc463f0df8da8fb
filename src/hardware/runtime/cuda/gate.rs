//! A gate in a stream: what is enqueued behind it begins when the host has enqueued all of it.
//! So the time between two events is the device's alone. Enqueueing a library's call may take
//! the host several times as long as the device needs for it.

use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use cudarc::driver::sys;

use super::error::{Failure, check};
use super::handle::Stream;

/// How long a gate stays closed at most. A library's call may itself wait for the stream, as
/// when the driver loads code.
const LONGEST: Duration = Duration::from_millis(100);

#[derive(Default)]
struct State {
    is_open: Mutex<bool>,
    changed: Condvar,
}

/// A gate, open once it is dropped.
pub(super) struct Gate(Arc<State>);

impl Gate {
    /// A closed gate behind what is enqueued.
    pub(super) fn close(stream: &Stream) -> Result<Self, Failure> {
        let state = Arc::new(State::default());
        let of_stream = Arc::into_raw(Arc::clone(&state));
        // SAFETY: the stream is alive, and the state is the function's until it has run.
        let code =
            unsafe { sys::cuLaunchHostFunc(stream.raw(), Some(wait), of_stream.cast_mut().cast()) };
        if let Err(failure) = check("cuLaunchHostFunc", code) {
            // SAFETY: the function will not run. The state came from an `Arc`.
            drop(unsafe { Arc::from_raw(of_stream) });
            return Err(failure);
        }
        Ok(Self(state))
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let is_open = self.0.is_open.lock();
        *is_open.unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_all();
    }
}

/// Keeps the stream until the gate is open. A device that is lost does not call it, and keeps
/// the few bytes of the state.
unsafe extern "C" fn wait(state: *mut c_void) {
    // SAFETY: `close` gave it this reference to a state, and it is called once.
    let state = unsafe { Arc::from_raw(state.cast::<State>()) };
    let is_open = state.is_open.lock();
    let is_open = is_open.unwrap_or_else(PoisonError::into_inner);
    let waited = (state.changed).wait_timeout_while(is_open, LONGEST, |is_open| !*is_open);
    drop(waited);
}

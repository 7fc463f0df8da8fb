//! Commands that are enqueued without an event.
//!
//! A queue is in order, so the end of a command covers all before it. An event for
//! each would be wasted: of NVIDIA's 6.7 us for a kernel 1.3 are its event's
//! (580.159 on an H200). The resources of commands without an event stay with their
//! queue until a command with an event takes them over.

use std::sync::Arc;

use cl3::command_queue::finish;
use cl3::error_codes::{DLOPEN_FUNCTION_NOT_AVAILABLE, DLOPEN_RUNTIME_LOAD_FAILED};
use cl3::types::{cl_event, cl_int};
use cl3::{OpenClRuntime, load_library};

use super::completion::KeepAlive;
use super::device::Shared;
use super::handle::Event;
use super::queue::OpenQueue;
use crate::runtime::EventId;

/// The commands of a queue behind its last one with an event: their resources and
/// what they wait for.
#[derive(Default)]
pub(super) struct UncoveredCommands {
    pub keep_alive: Vec<KeepAlive>,
    pub waits: Vec<EventId>,
    any: bool,
}

impl UncoveredCommands {
    /// Adds a command that was enqueued.
    pub(super) fn add(&mut self, uses: Vec<KeepAlive>, events: Vec<Arc<Event>>, waits: &[EventId]) {
        self.keep_alive.extend(uses);
        self.keep_alive
            .extend(events.into_iter().map(|event| event as KeepAlive));
        self.waits.extend_from_slice(waits);
        self.any = true;
    }
}

impl OpenQueue {
    /// Waits until the commands that no event covers have ended.
    pub(super) fn finish(&mut self, device: &Shared) {
        if self.uncovered.any && device.check().is_ok() {
            // The next call detects a device that fails here.
            let _ = finish(self.raw.raw());
        }
        self.uncovered = UncoveredCommands::default();
    }
}

/// Calls a function of the driver's library that enqueues a command, with or
/// without an event. The functions of the `cl3` crate always create one.
pub(super) fn enqueue(
    with_event: bool,
    function: impl FnOnce(&OpenClRuntime, *mut cl_event) -> Option<cl_int>,
) -> Result<Option<Event>, cl_int> {
    let library = load_library()
        .as_ref()
        .map_err(|_| DLOPEN_RUNTIME_LOAD_FAILED)?;
    let mut event: cl_event = std::ptr::null_mut();
    let out = match with_event {
        true => &raw mut event,
        false => std::ptr::null_mut(),
    };
    match function(library, out) {
        Some(0) => Ok(with_event.then(|| Event::new(event))),
        Some(code) => Err(code),
        None => Err(DLOPEN_FUNCTION_NOT_AVAILABLE),
    }
}

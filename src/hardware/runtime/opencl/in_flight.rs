//! Commands in flight, and the detection of those that a driver lost.
//!
//! A driver that loses its device should end every command with an error. Some
//! do not: no callback comes, and the host would wait for ever. So after a long
//! silence the backend queries the device and the status of each command. Only the
//! driver's own answers count, never the time that passed.

use std::sync::Arc;

use cl3::command_queue::flush;
use cl3::event::{
    CL_COMPLETE, CL_EVENT_COMMAND_EXECUTION_STATUS, get_event_info, set_user_event_status,
};
use cl3::types::cl_int;
use opencl3::error_codes::CL_DEVICE_NOT_AVAILABLE;

use super::completion::TokenCell;
use super::device::OpenDevice;
use super::handle::{Event, Queue};

/// A command whose resources have not been released.
pub(super) struct InFlight {
    /// Its last event.
    pub event: Arc<Event>,
    /// Index of its device.
    pub device: usize,
    /// Index of its context.
    pub context: usize,
    /// Kept until the end, since a driver may block in the release of a queue that
    /// is not empty.
    pub queue: Arc<Queue>,
    /// Its completion, if not delivered yet.
    pub cell: Arc<TokenCell>,
    /// The user events that stand for it in other contexts.
    pub bridges: Vec<Arc<Event>>,
}

impl InFlight {
    /// See [`ended_with`].
    pub(super) fn code(&self, device: &OpenDevice) -> Option<cl_int> {
        ended_with(&self.event, device)
    }

    /// Releases the commands in other contexts that wait for this ended command.
    pub(super) fn release_bridges(&self) {
        for bridge in &self.bridges {
            // Refused if the driver's callback came before.
            let _ = set_user_event_status(bridge.raw(), CL_COMPLETE);
        }
    }
}

/// The code with which an event ended, if the driver reports that it has ended or
/// that it is lost.
pub(super) fn ended_with(event: &Event, device: &OpenDevice) -> Option<cl_int> {
    if device.shared.check().is_err() {
        return Some(CL_DEVICE_NOT_AVAILABLE);
    }
    let status = get_event_info(event.raw(), CL_EVENT_COMMAND_EXECUTION_STATUS);
    match status.map(cl_int::from) {
        Ok(code) => (code <= CL_COMPLETE).then_some(code),
        Err(code) => {
            device.shared.mark_lost(&silently("clGetEventInfo", code));
            Some(CL_DEVICE_NOT_AVAILABLE)
        }
    }
}

impl OpenDevice {
    /// Queries the device; one that does not answer is lost.
    pub(super) fn probe(&self) {
        if let Ok(false) = self.id.available() {
            self.shared.mark_lost("its driver no longer offers it");
        }
        if let Err(code) = flush(self.service.raw()) {
            self.shared.mark_lost(&silently("clFlush", code));
        }
    }
}

fn silently(call: &str, code: cl_int) -> String {
    let code = super::failure::describe(code);
    format!("its commands did not end, and {call} answers {code}")
}

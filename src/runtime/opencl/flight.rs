//! Commands on their way, and what to do when one does not come back.
//!
//! A driver that loses its device should end every command with an error. Some
//! forget: no callback comes, and who waits would wait for ever. So after a
//! long silence the backend asks: is the device there, and what became of each
//! command? Only the driver's own answers count, never the time that passed.

use std::sync::Arc;

use cl3::command_queue::flush;
use cl3::event::{
    CL_COMPLETE, CL_EVENT_COMMAND_EXECUTION_STATUS, get_event_info, set_user_event_status,
};
use cl3::types::cl_int;
use opencl3::error_codes::CL_DEVICE_NOT_AVAILABLE;

use super::completion::Slot;
use super::device::OpenDevice;
use super::handle::{Event, Queue};

/// A command that has not been retired.
pub(super) struct Flight {
    /// Its last event.
    pub event: Arc<Event>,
    /// Index of its device.
    pub device: usize,
    /// Index of its context.
    pub context: usize,
    /// Kept until here, since a driver may wait in the release of a queue
    /// that is not empty.
    pub queue: Arc<Queue>,
    /// Its completion, if that has not been delivered.
    pub slot: Arc<Slot>,
    /// What waits for it in other contexts.
    pub bridges: Vec<Arc<Event>>,
}

impl Flight {
    /// The code with which the command ended, if the driver says that it has,
    /// or that it has lost it.
    pub(super) fn code(&self, device: &OpenDevice) -> Option<cl_int> {
        ended_with(&self.event, device)
    }

    /// Lets go what waits in other contexts for a command that has ended.
    pub(super) fn cross(&self) {
        for bridge in &self.bridges {
            // Refused where the driver's callback was here before.
            let _ = set_user_event_status(bridge.raw(), CL_COMPLETE);
        }
    }
}

/// The code with which an event ended, if the driver says that it has, or that
/// it has lost it.
pub(super) fn ended_with(event: &Event, device: &OpenDevice) -> Option<cl_int> {
    if device.shared.check().is_err() {
        return Some(CL_DEVICE_NOT_AVAILABLE);
    }
    let status = get_event_info(event.raw(), CL_EVENT_COMMAND_EXECUTION_STATUS);
    match status.map(cl_int::from) {
        Ok(code) => (code <= CL_COMPLETE).then_some(code),
        Err(code) => {
            device.shared.lose(&silently("clGetEventInfo", code));
            Some(CL_DEVICE_NOT_AVAILABLE)
        }
    }
}

impl OpenDevice {
    /// Asks the driver for a sign of life; a device without one is lost.
    pub(super) fn probe(&self) {
        if let Ok(false) = self.id.available() {
            self.shared.lose("its driver no longer offers it");
        }
        if let Err(code) = flush(self.service.raw()) {
            self.shared.lose(&silently("clFlush", code));
        }
    }
}

fn silently(call: &str, code: cl_int) -> String {
    let code = super::failure::describe(code);
    format!("its commands did not end, and {call} answers {code}")
}

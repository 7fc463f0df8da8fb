//! The meaning of OpenCL error codes, and the set of failed commands.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use cl3::error_codes::error_text;
use cl3::types::cl_int;
use opencl3::error_codes as code;

use crate::runtime::{EventId, RuntimeError, Status};

/// Whether this code means that the device, or everything on it, is lost.
fn is_loss(code: cl_int) -> bool {
    matches!(
        code,
        code::CL_DEVICE_NOT_AVAILABLE
            | code::CL_INVALID_CONTEXT
            | code::CL_INVALID_COMMAND_QUEUE
            | code::CL_INVALID_DEVICE
    )
}

/// Whether this code means that memory ran out.
pub(super) fn is_out_of_memory(code: cl_int) -> bool {
    matches!(
        code,
        code::CL_MEM_OBJECT_ALLOCATION_FAILURE
            | code::CL_OUT_OF_RESOURCES
            | code::CL_OUT_OF_HOST_MEMORY
            | code::CL_INVALID_BUFFER_SIZE
    )
}

/// The code's name and number.
pub(super) fn describe(code: cl_int) -> String {
    format!("{} ({code})", error_text(code))
}

/// The error of a call that failed on a device.
pub(super) fn call_error(device: &str, call: &'static str, code: cl_int) -> RuntimeError {
    if is_loss(code) {
        RuntimeError::DeviceLost {
            device: device.to_owned(),
            why: format!("{call} answered {}", describe(code)),
        }
    } else {
        RuntimeError::Call {
            device: device.to_owned(),
            call,
            why: describe(code),
        }
    }
}

/// The status of a command whose event has this negative execution status.
pub(super) fn status_of(code: cl_int) -> Status {
    let why = format!("the driver ended it with {}", describe(code));
    if is_loss(code) {
        Status::DeviceLost(why)
    } else {
        Status::Failed(why)
    }
}

/// The commands that failed, so that those that wait for them fail too.
///
/// Only failures are stored, and a runtime sees few.
#[derive(Debug, Default)]
pub(super) struct Failures(Mutex<HashSet<EventId>>);

impl Failures {
    /// Records a failed command.
    pub(super) fn note(&self, event: EventId) {
        self.lock().insert(event);
    }

    /// Whether one of these commands failed.
    pub(super) fn any(&self, events: &[EventId]) -> bool {
        if events.is_empty() {
            return false;
        }
        let failed = self.lock();
        !failed.is_empty() && events.iter().any(|event| failed.contains(event))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<EventId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_device_is_distinguished_from_a_failed_command() {
        assert!(matches!(status_of(-2), Status::DeviceLost(_)));
        assert!(
            matches!(status_of(-5), Status::Failed(why) if why.contains("CL_OUT_OF_RESOURCES"))
        );
        assert!(matches!(
            call_error("opencl0.0", "clFlush", -34),
            RuntimeError::DeviceLost { .. }
        ));
    }

    #[test]
    fn failures_are_remembered() {
        let failures = Failures::default();
        let (good, bad) = (EventId::fresh(), EventId::fresh());
        failures.note(bad);
        assert!(!failures.any(&[good]));
        assert!(failures.any(&[good, bad]));
    }
}

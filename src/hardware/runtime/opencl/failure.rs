//! The meaning of OpenCL error codes, and the set of failed commands.

use cl3::error_codes::error_text;
use cl3::types::cl_int;
use opencl3::error_codes as code;

use crate::runtime::driven::{self, Code};
use crate::runtime::{RuntimeError, Status};

/// A call that failed, and the driver's code.
pub(super) type Failure = driven::Failure<cl_int>;

impl Code for cl_int {
    fn is_loss(self) -> bool {
        matches!(
            self,
            code::CL_DEVICE_NOT_AVAILABLE
                | code::CL_INVALID_CONTEXT
                | code::CL_INVALID_COMMAND_QUEUE
                | code::CL_INVALID_DEVICE
        )
    }

    fn is_out_of_memory(self) -> bool {
        matches!(
            self,
            code::CL_MEM_OBJECT_ALLOCATION_FAILURE
                | code::CL_OUT_OF_RESOURCES
                | code::CL_OUT_OF_HOST_MEMORY
                | code::CL_INVALID_BUFFER_SIZE
        )
    }

    fn describe(self) -> String {
        format!("{} ({self})", error_text(self))
    }
}

/// The error of a call that failed on a device.
pub(super) fn call_error(device: &str, call: &'static str, code: cl_int) -> RuntimeError {
    Failure { call, code }.on(device)
}

/// The status of a command whose event has this negative execution status.
pub(super) fn status_of(code: cl_int) -> Status {
    let why = format!("the driver ended it with {}", code.describe());
    match code.is_loss() {
        true => Status::DeviceLost(why),
        false => Status::Failed(why),
    }
}

/// Why a device is lost of which nothing is heard.
pub(super) fn silently(call: &str, code: cl_int) -> String {
    let code = code.describe();
    format!("its commands did not end, and {call} answers {code}")
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
}

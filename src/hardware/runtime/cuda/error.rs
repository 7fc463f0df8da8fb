//! The meaning of CUDA's error codes.

use std::ffi::{CStr, c_char};

use cudarc::driver::sys::{self, CUresult};

use crate::runtime::driven::{self, Code};

/// A call that failed, and the driver's code.
pub(super) type Failure = driven::Failure<CUresult>;

/// Turns a call's code into a result.
pub(super) fn check(call: &'static str, code: CUresult) -> Result<(), Failure> {
    match code {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(Failure { call, code }),
    }
}

impl Code for CUresult {
    /// Whether the device, or all that its context holds, is lost. These errors stay: every
    /// later call of the context returns them again.
    fn is_loss(self) -> bool {
        use CUresult::*;
        matches!(
            self,
            CUDA_ERROR_DEINITIALIZED
                | CUDA_ERROR_DEVICE_UNAVAILABLE
                | CUDA_ERROR_NO_DEVICE
                | CUDA_ERROR_INVALID_DEVICE
                | CUDA_ERROR_INVALID_CONTEXT
                | CUDA_ERROR_ECC_UNCORRECTABLE
                | CUDA_ERROR_NVLINK_UNCORRECTABLE
                | CUDA_ERROR_CONTAINED
                | CUDA_ERROR_ILLEGAL_ADDRESS
                | CUDA_ERROR_LAUNCH_TIMEOUT
                | CUDA_ERROR_CONTEXT_IS_DESTROYED
                | CUDA_ERROR_ASSERT
                | CUDA_ERROR_HARDWARE_STACK_ERROR
                | CUDA_ERROR_ILLEGAL_INSTRUCTION
                | CUDA_ERROR_MISALIGNED_ADDRESS
                | CUDA_ERROR_INVALID_ADDRESS_SPACE
                | CUDA_ERROR_INVALID_PC
                | CUDA_ERROR_LAUNCH_FAILED
                | CUDA_ERROR_TENSOR_MEMORY_LEAK
                | CUDA_ERROR_SYSTEM_NOT_READY
                | CUDA_ERROR_MPS_CLIENT_TERMINATED
                | CUDA_ERROR_EXTERNAL_DEVICE
                | CUDA_ERROR_UNKNOWN
        )
    }

    fn is_out_of_memory(self) -> bool {
        self == CUresult::CUDA_ERROR_OUT_OF_MEMORY
    }

    fn describe(self) -> String {
        let number = self as u32;
        let meaning = match self {
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS => {
                "; a kernel reached outside of its memory, and CUDA then ends the whole context"
            }
            CUresult::CUDA_ERROR_ECC_UNCORRECTABLE => "; the GPU's memory is defective",
            CUresult::CUDA_ERROR_SYSTEM_NOT_READY => "; is nvidia-fabricmanager running?",
            _ => "",
        };
        match (
            text_of(self, sys::cuGetErrorName),
            text_of(self, sys::cuGetErrorString),
        ) {
            (Some(name), Some(text)) => format!("{name} ({number}): {text}{meaning}"),
            (Some(name), None) => format!("{name} ({number}){meaning}"),
            _ => format!("error {number}{meaning}"),
        }
    }
}

/// A text of the driver's about a code, where it knows one.
fn text_of(
    code: CUresult,
    ask: unsafe fn(CUresult, *mut *const c_char) -> CUresult,
) -> Option<String> {
    let mut text = std::ptr::null();
    // SAFETY: the driver writes the address of a constant text, or null.
    let known = unsafe { ask(code, &mut text) };
    if known != CUresult::CUDA_SUCCESS || text.is_null() {
        return None;
    }
    // SAFETY: the driver's constant texts end with zero.
    let text = unsafe { CStr::from_ptr(text) };
    Some(text.to_string_lossy().into_owned())
}

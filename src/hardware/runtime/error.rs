//! The errors of a runtime. Each names what was tried, on which device, and what
//! to do about it.

use thiserror::Error;

/// An error of a runtime.
#[derive(Debug, Error)]
pub enum RuntimeError {
    #[error("no {what} with this id; it was never created here or was released")]
    Unknown { what: &'static str },

    #[error("{device}: {requested} bytes of memory do not fit: {why}")]
    OutOfMemory {
        device: String,
        requested: u64,
        why: String,
    },

    #[error("{device}: kernel `{kernel}` does not compile; the compiler says:\n{log}")]
    Build {
        device: String,
        kernel: String,
        log: String,
    },

    /// `why` begins with the kernel's name.
    #[error("{device} cannot run kernel {why}")]
    Unfit { device: String, why: String },

    #[error("{device}: codelet `{codelet}` has no implementation for this kind of device")]
    NoImplementation { device: String, codelet: String },

    #[error("{device}: {what} is not possible here; use an OpenCL device")]
    Unsupported { device: String, what: &'static str },

    #[error("{device} was lost: {why}")]
    DeviceLost { device: String, why: String },

    #[error("host memory cannot be read or filled while commands are in flight")]
    Busy,

    #[error("this simulated run carries no data; ask for verification to have some")]
    NoData,

    #[error("no OpenCL: {0}")]
    NoOpenCl(String),

    #[error("{device}: {call} failed: {why}")]
    Call {
        device: String,
        call: &'static str,
        why: String,
    },

    #[error("{device}: a {what} failed: {why}")]
    Failed {
        device: String,
        what: &'static str,
        why: String,
    },

    #[error("{0}")]
    Selection(String),
}

/// How the reason begins for which a device cannot take part in a run.
const UNFIT: &str = "it cannot run kernel";

impl RuntimeError {
    /// The device without which a run goes on if others are left, and why: it was lost, or
    /// cannot run a kernel.
    pub fn leaves_out(&self) -> Option<(&str, String)> {
        match self {
            Self::DeviceLost { device, why } => Some((device, why.clone())),
            Self::Unfit { device, why } => Some((device, format!("{UNFIT} {why}"))),
            Self::Build {
                device,
                kernel,
                log,
            } => Some((
                device,
                format!("{UNFIT} `{kernel}`; its compiler says: {log}"),
            )),
            _ => None,
        }
    }
}

/// Whether a run goes on without a device for this reason since it cannot run a kernel; it was
/// lost otherwise.
pub fn is_unfit(why: &str) -> bool {
    why.starts_with(UNFIT)
}

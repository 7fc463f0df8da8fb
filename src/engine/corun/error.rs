//! Why a co-run cannot begin or go on.

use thiserror::Error;

use crate::runtime::RuntimeError;
use crate::workload::FirstVersionError;

/// An error of a [`Corun`](super::Corun).
#[derive(Debug, Error)]
pub enum CorunError {
    #[error(transparent)]
    Runtime(#[from] RuntimeError),

    #[error(transparent)]
    FirstVersion(#[from] FirstVersionError),

    #[error("there is no device to run on")]
    NoDevice,

    #[error("a run of 0 steps computes nothing; ask for at least 1")]
    NoSteps,

    #[error(
        "{device} computes in single precision only, and `{workload}` needs double; \
         leave it out of the devices, or choose single precision"
    )]
    NoDouble {
        device: String,
        workload: &'static str,
    },

    #[error(
        "{device}: {limit} bytes of its memory are too few; streaming alone needs {needed} \
         bytes at this size; raise the memory limit or leave the device out"
    )]
    DeviceMemory {
        device: String,
        limit: u64,
        needed: u64,
    },

    #[error("the kernel has no buffer, so that nothing of it is left when it has ended")]
    NoBuffer,

    #[error("interrupted while trying parts of the kernel")]
    Interrupted,

    #[error("{device}: the kernel fails there: {why}")]
    Trial { device: String, why: String },

    #[error(
        "kernel `{kernel}` writes past the end of buffer `{name}` (argument {argument}, {bytes} \
         bytes) on {device}; give the buffer or the work another size in the kernel's file, or \
         the kernel other indices"
    )]
    PastEnd {
        kernel: String,
        name: String,
        argument: usize,
        bytes: u64,
        device: String,
    },

    #[error("no device is left; the last, {device}: {why}")]
    AllLost { device: String, why: String },

    #[error("device {device} has no memory of its own for held units (a fault of the engine)")]
    NoMemory { device: usize },

    #[error("balancer `{balancer}`: {what} in step {step} (a fault of the balancer)")]
    Balancer {
        balancer: String,
        step: u32,
        what: &'static str,
    },
}

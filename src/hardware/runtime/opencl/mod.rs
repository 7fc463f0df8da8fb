//! OpenCL devices as a [`Backend`](super::Backend).
//!
//! This folder owns every OpenCL call. The loader is searched for when the
//! program runs, so it starts where no OpenCL is installed.
//!
//! * [`discover()`] lists devices and warnings (`discover`, `warnings`), and
//!   [`examine_loader`] describes the loader (`loader`).
//! * [`OpenClBackend`] opens a selection of them: `partition` decides on
//!   sub-devices, `open` makes one context for each platform, `device` holds
//!   an open device, and `backend` implements the trait.
//! * `submit` enqueues a command through `queue` (transfers) or `launch` (kernels,
//!   which `program` compiles, within what a device allows them: `kernel_limits`).
//!   `queue_program` gives each queue its own program where a driver confuses them;
//!   `without_event` saves the events of commands that a later one covers,
//!   `series` most events of commands that share a completion, and `repeat` the
//!   preparation of a launch that was made before.
//! * `completion` turns an event into a completion, with times that `stamps`
//!   reads. `bridged_event` carries an event into another
//!   platform's context, `polling` polls the events of drivers whose callbacks are
//!   costly, and `in_flight` detects commands that a driver lost silently.
//! * `ptx_compiler` compiles kernels that run through CUDA, and `identity` tells which GPU
//!   a device is.
//! * `pocl_cache` tells why PoCL, which needs a folder for its cache, has no devices.
//! * `memory` pins host memory, and lets kernels work on it where a device
//!   shares it. `handle` owns OpenCL objects, `failure` explains error codes.
//!
//! Without the crate's feature `opencl` only the answer that there is no OpenCL exists
//! (`absent`).
//!
//! A queue in which a command failed stays failed, since everything behind the
//! failure would compute on missing data; a new queue starts afresh.

#[cfg(not(feature = "opencl"))]
mod absent;
#[cfg(feature = "opencl")]
mod backend;
#[cfg(feature = "opencl")]
mod batch;
#[cfg(feature = "opencl")]
mod bridged_event;
#[cfg(feature = "opencl")]
mod completion;
#[cfg(feature = "opencl")]
mod device;
#[cfg(feature = "opencl")]
mod discover;
#[cfg(feature = "opencl")]
mod drivers;
#[cfg(feature = "opencl")]
mod failure;
#[cfg(feature = "opencl")]
mod handle;
#[cfg(feature = "opencl")]
mod identity;
#[cfg(feature = "opencl")]
mod in_flight;
#[cfg(feature = "opencl")]
mod inspect;
#[cfg(feature = "opencl")]
mod kernel_limits;
#[cfg(feature = "opencl")]
mod launch;
#[cfg(feature = "opencl")]
mod loader;
#[cfg(feature = "opencl")]
mod memory;
#[cfg(feature = "opencl")]
mod open;
#[cfg(feature = "opencl")]
mod partition;
#[cfg(feature = "opencl")]
mod pocl_cache;
#[cfg(feature = "opencl")]
mod polling;
#[cfg(feature = "opencl")]
mod program;
#[cfg(feature = "opencl")]
mod ptx_compiler;
#[cfg(feature = "opencl")]
mod queue;
#[cfg(feature = "opencl")]
mod queue_program;
#[cfg(feature = "opencl")]
mod repeat;
#[cfg(feature = "opencl")]
mod series;
#[cfg(feature = "opencl")]
mod stamps;
#[cfg(feature = "opencl")]
mod submit;
#[cfg(feature = "opencl")]
mod threads;
#[cfg(feature = "opencl")]
mod warnings;
#[cfg(feature = "opencl")]
mod without_event;

#[cfg(not(feature = "opencl"))]
pub use absent::{PtxCompiler, confine, discover, open};
#[cfg(feature = "opencl")]
pub use backend::{OpenClBackend, open};
#[cfg(feature = "opencl")]
pub use discover::discover;
#[cfg(feature = "opencl")]
pub use loader::{LAYERS, ListedPlatform, Loader, examine as examine_loader};
#[cfg(feature = "opencl")]
pub use ptx_compiler::PtxCompiler;
#[cfg(feature = "opencl")]
pub use threads::confine;

use super::gpu_identity::GpuIdentity;
use crate::machine::Device;

/// The suffix of the name of a device that is treated as one with memory of its
/// own.
pub const OWN: &str = "=own";

/// A device found.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundDevice {
    /// Index of its platform.
    pub platform: usize,
    /// Index within its platform.
    pub device: usize,
    pub info: Device,
    /// Which GPU it is; nothing of other devices.
    pub identity: GpuIdentity,
}

/// The devices found, and warnings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Discovery {
    pub devices: Vec<FoundDevice>,
    /// A sentence or two each, with the remedy.
    pub warnings: Vec<String>,
}

/// A device to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selected {
    /// Index of the platform.
    pub platform: usize,
    /// Index of the device within its platform.
    pub device: usize,
    /// Take a sub-device of so many compute units; `None` takes it whole.
    pub units: Option<u32>,
    /// Treat a device that shares the host's memory as one with memory of its own:
    /// it computes only in its own buffers, and data is copied to them.
    pub own_memory: bool,
}

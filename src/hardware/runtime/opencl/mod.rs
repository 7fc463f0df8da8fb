//! OpenCL devices as a [`Backend`](super::Backend).
//!
//! This folder owns every OpenCL call. The loader is searched for when the
//! program runs, so it starts where no OpenCL is installed.
//!
//! * [`discover()`] lists devices and warnings (`discover`, `warnings`), and
//!   [`examine_loader`] describes the loader (`loader`).
//! * [`open()`] opens a selection of them: `open` decides on sub-devices and makes one
//!   context for each platform, `device` holds an open device, and `backend` serves the machine
//!   of queues and completions (`driven`).
//! * `queue` enqueues transfers and `launch` kernels, which `program` compiles, within what a
//!   device allows them. `queue_program` gives each queue its own program where
//!   a driver confuses them, and `repeat` saves the preparation of a launch that was made before.
//! * `events` has what events tell: ends, of which drivers call or which are polled, and times.
//! * `ptx_compiler` compiles kernels that run through CUDA.
//! * `warnings` also tells why PoCL, which needs a folder for its cache, has no devices.
//! * `memory` pins host memory, and lets kernels work on it where a device
//!   shares it. `handle` owns OpenCL objects, `failure` explains error codes.
//!
//! Without the crate's feature `opencl` only the answer that there is no OpenCL exists
//! (`absent`).

#[cfg(not(feature = "opencl"))]
mod absent;
#[cfg(feature = "opencl")]
mod backend;
#[cfg(feature = "opencl")]
mod device;
#[cfg(feature = "opencl")]
mod discover;
#[cfg(feature = "opencl")]
mod events;
#[cfg(feature = "opencl")]
mod failure;
#[cfg(feature = "opencl")]
mod handle;
#[cfg(feature = "opencl")]
mod launch;
#[cfg(feature = "opencl")]
mod loader;
#[cfg(feature = "opencl")]
mod memory;
#[cfg(feature = "opencl")]
mod open;
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
mod warnings;

#[cfg(not(feature = "opencl"))]
pub use absent::{PtxCompiler, confine, discover, open};
#[cfg(feature = "opencl")]
pub use backend::open;
#[cfg(feature = "opencl")]
pub use discover::{confine, discover};
#[cfg(feature = "opencl")]
pub use loader::{LAYERS, ListedPlatform, Loader, examine as examine_loader};
#[cfg(feature = "opencl")]
pub use ptx_compiler::PtxCompiler;

use super::ids::GpuIdentity;
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

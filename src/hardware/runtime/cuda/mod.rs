//! NVIDIA GPUs through CUDA's driver, as a [`Backend`](super::Backend).
//!
//! This folder owns every CUDA call. The driver's library is searched for when the program
//! runs, so it builds and starts where no CUDA is installed. [docs/cuda.md] says what is
//! carried and what stays with OpenCL.
//!
//! * [`discover()`] lists devices, or says why there are none (`discover`).
//! * `backend` serves the machine of queues and completions (`driven`): `device` holds
//!   an open device, `memory` and `launch` enqueue commands, `graph` many launches at once.
//! * `serve` enqueues a launch by our kernels or by CUDA's libraries (`library`), whichever
//!   was faster.
//! * A kernel's OpenCL C is compiled by NVIDIA's OpenCL compiler ([`super::opencl`]) or by
//!   NVRTC (`nvrtc`), as `compiler` chooses; [`ptx`] translates the PTX and `program` loads it.
//! * `handle` owns CUDA objects, `error` explains error codes, `memory` has host memory,
//!   and `managed` memory on a GPU that is the host's, too.
//!
//! Without the crate's feature `cuda` only [`ptx`] and the answer that there is no CUDA
//! exist (`absent`).
//!
//! [docs/cuda.md]: https://github.com/pdawl/pdawl/blob/main/docs/cuda.md

#[cfg(not(feature = "cuda"))]
mod absent;
#[cfg(feature = "cuda")]
mod backend;
pub mod compiler;
#[cfg(feature = "cuda")]
mod device;
#[cfg(feature = "cuda")]
mod discover;
#[cfg(feature = "cuda")]
mod error;
#[cfg(feature = "cuda")]
mod graph;
#[cfg(feature = "cuda")]
mod handle;
#[cfg(feature = "cuda")]
mod launch;
#[cfg(feature = "cuda")]
mod library;
#[cfg(feature = "cuda")]
mod managed;
#[cfg(feature = "cuda")]
mod memory;
#[cfg(feature = "cuda")]
mod nvrtc;
#[cfg(feature = "cuda")]
mod program;
pub mod ptx;
#[cfg(feature = "cuda")]
mod serve;

#[cfg(not(feature = "cuda"))]
pub use absent::{GpuBytes, discover, memory_on, open};
#[cfg(feature = "cuda")]
pub use backend::open;
#[cfg(feature = "cuda")]
pub use discover::discover;
#[cfg(feature = "cuda")]
pub use managed::{GpuBytes, memory_on};

use super::ids::GpuIdentity;
use crate::machine::Device;

/// A GPU found.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundGpu {
    /// Its number among CUDA's devices.
    pub device: usize,
    pub info: Device,
    /// Which GPU it is, for comparison with OpenCL's devices.
    pub identity: GpuIdentity,
}

/// The GPUs found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Discovery {
    pub devices: Vec<FoundGpu>,
    /// Why there are none, with the remedy.
    pub fault: Option<String>,
}

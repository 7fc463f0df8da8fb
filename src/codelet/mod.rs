//! A codelet: one computation with an implementation for each kind of device,
//! and its cost.
//!
//! [`Codelet`] is the description that a runtime needs to run the computation;
//! [`memory`] holds what arguments are made of, [`stencil`] the stencils, [`spmv`]
//! sparse matrix times vector, [`copy`] the yardstick of memory bandwidth, and
//! `host` what native kernels share. A codelet knows nothing of runtimes, shares or steps.

pub mod copy;
pub(crate) mod host;
pub mod memory;
mod precision;
pub mod spmv;
pub mod stencil;

use std::ops::Range;

pub use memory::{BufferId, HostMemoryId, HostValue, Memory, Value};
pub use precision::Precision;

/// Operations and memory traffic of a launch, as the roofline counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes that must cross the memory interface of whoever computes: each
    /// input read once, each output written once.
    pub bytes: f64,
}

/// A native implementation: computes `units`, any part of a launch's range
/// (whose first unit is `first`), from the launch's arguments.
///
/// # Safety
/// The arguments must be those that the codelet documents, memory must be as
/// long as they imply, and no one else may write what `units` reads or touch
/// what it writes until it returns.
pub type HostKernel = unsafe fn(args: &[HostValue], first: u64, units: Range<u64>);

/// Global and local sizes of an OpenCL launch, at most three dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NdRange {
    pub global: Vec<usize>,
    /// `None` leaves the choice to the driver.
    pub local: Option<Vec<usize>>,
}

/// An OpenCL implementation.
#[derive(Clone, Debug)]
pub struct OpenClKernel {
    pub source: &'static str,
    /// The source file's name, for messages.
    pub file: &'static str,
    pub entry: &'static str,
    /// Compiler options, such as `-DREAL=double`.
    pub options: &'static str,
    /// Whether it needs `cl_khr_fp64`.
    pub fp64: bool,
    /// The sizes for a launch over these units with these arguments.
    pub ndrange: fn(&Range<u64>, &[Value]) -> NdRange,
}

/// One computation with several implementations.
#[derive(Clone, Debug)]
pub struct Codelet {
    /// Its name in traces and messages.
    pub name: &'static str,
    pub host: Option<HostKernel>,
    pub opencl: Option<OpenClKernel>,
}

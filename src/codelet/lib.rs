//! A codelet: one computation with an implementation for each kind of device,
//! and its cost.
//!
//! A runtime needs a [`Codelet`] to run the computation. [`memory`] holds the
//! arguments of a launch, [`stencil`] the stencils, [`spmv`] sparse matrix times
//! vector, [`gemm`] dense products, [`convolution`] of images, [`softmax`],
//! [`transpose`] and [`add_norm`] the rest of a transformer, [`tile`] operations on
//! tiles of dense matrices, [`mix`] a computation whose result shows wrong orders and
//! copies, [`copy`] the measure of memory bandwidth, [`sort`] of singles, [`function`]
//! safe functions of users, [`opencl_c`] the tokens of kernels' texts, [`zeros`] the first contents of outputs that a kernel
//! writes in part, [`library`] calls of libraries beside our kernels, and `host` the shared
//! parts of native kernels. A codelet knows nothing of runtimes, shares or steps.

pub mod add_norm;
pub mod convolution;
pub mod copy;
pub mod fft;
pub mod function;
pub mod gemm;
mod host;
mod kernel;
pub mod library;
pub mod lu;
pub mod memory;
pub mod mix;
mod number_format;
pub mod opencl_c;
pub mod rows;
pub mod softmax;
pub mod sort;
pub mod spmv;
pub mod stencil;
pub mod tile;
pub mod transpose;
pub mod zeros;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub use host::{Level, Stores, for_each_piece};
pub use kernel::{
    AddressSpace, KernelArgument, KernelSeries, KernelSource, LEAST_GROUP, LocalSize, Name,
    NdRange, OpenClKernel, Shape, ShapeFn, Step, StepsFn,
};
pub use library::LibraryKernel;
pub use memory::{BufferId, HostMemoryId, HostValue, Memory, RawValue, Value};
pub use number_format::{Element, NumberFormat, Precision, ProductPrecision};

/// Operations and memory traffic of a launch, as the roofline counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes that must cross the memory interface of the device that computes: each
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

/// A native implementation that divides its units among threads by itself: among so many
/// of the `rayon` pool that calls it, or on the calling thread alone if `threads` is 1.
/// Large pieces suit the libraries of dense matrices, which pack what they multiply.
///
/// # Safety
/// That of [`HostKernel`].
pub type SharedKernel =
    unsafe fn(args: &[HostValue], first: u64, units: Range<u64>, threads: usize);

/// A native implementation with what it has captured; the arguments are those of
/// [`HostKernel`].
pub type HostFunction = Arc<dyn Fn(&[HostValue], u64, Range<u64>) + Send + Sync>;

/// A [`SharedKernel`] with what it has captured.
pub type SharedFunction = Arc<dyn Fn(&[HostValue], u64, Range<u64>, usize) + Send + Sync>;

/// A codelet's native implementation.
#[derive(Clone)]
pub enum HostCode {
    /// A kernel whose parameters are arguments.
    Kernel(HostKernel),
    /// A kernel that gets all units at once.
    Shared(SharedKernel),
    /// A function of the user's.
    Function(HostFunction),
    /// A function of the user's that gets all units at once.
    SharedFunction(SharedFunction),
}

impl HostCode {
    /// Computes `units`, any part of a launch's range, whose first unit is `first`, on
    /// the calling thread.
    ///
    /// # Safety
    /// That of [`HostKernel`].
    pub unsafe fn run(&self, args: &[HostValue], first: u64, units: Range<u64>) {
        // SAFETY: the caller's.
        unsafe { self.run_with(args, first, units, 1) }
    }

    /// The same, on so many threads of the `rayon` pool that calls it if it
    /// [is shared](Self::is_shared).
    ///
    /// # Safety
    /// That of [`HostKernel`].
    pub unsafe fn run_with(
        &self,
        args: &[HostValue],
        first: u64,
        units: Range<u64>,
        threads: usize,
    ) {
        match self {
            // SAFETY: the caller's.
            Self::Kernel(kernel) => unsafe { kernel(args, first, units) },
            // SAFETY: the caller's.
            Self::Shared(kernel) => unsafe { kernel(args, first, units, threads) },
            Self::Function(function) => function(args, first, units),
            Self::SharedFunction(function) => function(args, first, units, threads),
        }
    }

    /// Whether it divides its units among threads by itself.
    pub fn is_shared(&self) -> bool {
        match self {
            Self::Shared(_) | Self::SharedFunction(_) => true,
            Self::Kernel(_) | Self::Function(_) => false,
        }
    }
}

impl fmt::Debug for HostCode {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel(_) => "Kernel",
            Self::Shared(_) => "Shared",
            Self::Function(_) => "Function",
            Self::SharedFunction(_) => "SharedFunction",
        })
    }
}

/// One computation with several implementations.
#[derive(Clone, Debug)]
pub struct Codelet {
    /// Its name in traces and messages.
    pub name: Name,
    pub host: Option<HostCode>,
    pub opencl: Option<OpenClKernel>,
    /// Calls of a library beside the OpenCL implementation, which serves without it. Where there
    /// is none, only a device with the library can compute the codelet.
    pub library: Option<LibraryKernel>,
}

impl Codelet {
    /// Why a device may not compute it.
    pub fn limits(&self) -> &'static str {
        match (&self.host, &self.opencl) {
            (Some(_), None) if self.name.starts_with(fft::NAME) => fft::LIMITS,
            (Some(_), None) => "only the host computes it",
            (None, Some(_)) => "the host does not compute it, nor what has no double precision",
            _ => "it needs double precision",
        }
    }
}

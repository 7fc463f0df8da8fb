//! What there is without the crate's feature `opencl`: no device, and the reason.

use std::time::Instant;

use crossbeam_channel::Sender;

use super::{Discovery, Selected};
use crate::codelet::{KernelArgument, KernelSource};
use crate::runtime::ids::GpuIdentity;
use crate::runtime::{Backend, Completion, RuntimeError};

const WHY: &str = "this program was built without OpenCL; build it with the feature `opencl`";

/// No device, and why.
pub fn discover() -> Discovery {
    Discovery {
        devices: Vec::new(),
        warnings: vec![WHY.to_owned()],
    }
}

/// Opens nothing.
///
/// # Errors
/// Always.
pub fn open(
    _selection: &[Selected],
    _completions: Sender<Completion>,
    _epoch: Instant,
) -> Result<Box<dyn Backend>, RuntimeError> {
    Err(RuntimeError::NoOpenCl(WHY.to_owned()))
}

/// Does nothing, as no driver has threads.
pub fn confine(_cores: &[usize]) {}

/// NVIDIA's OpenCL compiler, of which there is none.
pub enum PtxCompiler {}

impl PtxCompiler {
    /// Finds nothing.
    ///
    /// # Errors
    /// Always.
    pub fn new(_name: &str, _identity: &GpuIdentity) -> Result<Self, RuntimeError> {
        Err(RuntimeError::NoOpenCl(WHY.to_owned()))
    }

    /// # Errors
    /// None, as there is no compiler.
    pub fn compile(&self, _source: &KernelSource) -> Result<String, RuntimeError> {
        match *self {}
    }

    /// # Errors
    /// None, as there is no compiler.
    pub fn arguments(&self, _source: &KernelSource) -> Result<Vec<KernelArgument>, RuntimeError> {
        match *self {}
    }
}

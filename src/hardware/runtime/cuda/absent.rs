//! What there is without the crate's feature `cuda`: no device, and the reason.

use std::time::Instant;

use crossbeam_channel::Sender;

use super::Discovery;
use crate::runtime::{Backend, Completion, HostRegion, RuntimeError};

const WHY: &str = "this program was built without CUDA; build it with the feature `cuda`";

/// No device, and why.
pub fn discover() -> Discovery {
    Discovery {
        devices: Vec::new(),
        fault: Some(WHY.to_owned()),
    }
}

/// Opens nothing.
///
/// # Errors
/// Always.
pub fn open(
    _devices: &[usize],
    _uses_libraries: bool,
    _completions: Sender<Completion>,
    _epoch: Instant,
) -> Result<Box<dyn Backend>, RuntimeError> {
    Err(RuntimeError::Selection(WHY.to_owned()))
}

/// Bytes that are on a GPU, of which there are none.
#[derive(Clone, Copy, Debug)]
pub enum GpuBytes {}

impl GpuBytes {
    /// # Errors
    /// Always.
    pub fn at(_address: u64, _bytes: usize) -> Result<Self, RuntimeError> {
        Err(RuntimeError::Selection(WHY.to_owned()))
    }

    pub fn gpu(&self) -> usize {
        match *self {}
    }

    /// # Safety
    /// None is needed.
    ///
    /// # Errors
    /// None.
    pub unsafe fn load(&self) -> Result<HostRegion, RuntimeError> {
        match *self {}
    }

    /// # Safety
    /// None is needed.
    ///
    /// # Errors
    /// None.
    pub unsafe fn store(&self, _from: &[u8]) -> Result<(), RuntimeError> {
        match *self {}
    }
}

/// No memory, and why.
///
/// # Errors
/// Always.
pub fn memory_on(_gpu: usize, _bytes: u64) -> Result<HostRegion, RuntimeError> {
    Err(RuntimeError::Selection(WHY.to_owned()))
}

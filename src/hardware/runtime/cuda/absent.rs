//! What there is without the crate's feature `cuda`: no device, and the reason.

use std::time::Instant;

use crossbeam_channel::Sender;

use super::Discovery;
use crate::runtime::{Backend, Completion, RuntimeError};

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

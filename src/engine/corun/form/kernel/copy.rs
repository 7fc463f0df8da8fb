//! Copies of host memory.

use crate::runtime::{HostMemoryId, Runtime, RuntimeError};

/// Bytes copied at a time: they stay in a cache in between.
const PIECE: usize = 256 << 10;

/// Copies host memory.
pub(super) fn copy(
    runtime: &mut dyn Runtime,
    from: HostMemoryId,
    to: HostMemoryId,
    bytes: u64,
) -> Result<(), RuntimeError> {
    let mut piece = vec![0; PIECE.min(bytes as usize)];
    let mut at = 0;
    while at < bytes as usize {
        let end = (at + PIECE).min(bytes as usize);
        let piece = &mut piece[..end - at];
        match runtime.host_bytes(from) {
            Ok(from) => piece.copy_from_slice(&from[at..end]),
            Err(RuntimeError::NoData) => return Ok(()),
            Err(error) => return Err(error),
        }
        runtime.host_bytes(to)?[at..end].copy_from_slice(piece);
        at = end;
    }
    Ok(())
}

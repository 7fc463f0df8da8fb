//! The two grids in host memory: first version, poison, result.

use crate::parallel;
use crate::runtime::{HostMemoryId, Runtime, RuntimeError};
use crate::workload::Grid;

/// What memory that nothing wrote shows: a NaN in either precision.
pub(super) const POISON: u8 = 0xff;

/// Units that one thread fills at a time, in bytes.
pub(super) const PIECE: u64 = 4 << 20;

/// Writes the first version into `first`, and poison into `second`, over all
/// cores; touching every page here keeps page faults out of the first step. A
/// simulation without data has nothing to fill.
pub fn fill(
    runtime: &mut dyn Runtime,
    workload: &dyn Grid,
    first: HostMemoryId,
    second: HostMemoryId,
) -> Result<(), RuntimeError> {
    let units = PIECE.div_ceil(workload.unit_bytes()).max(1);
    match runtime.host_bytes(first) {
        Err(RuntimeError::NoData) => return Ok(()),
        Err(error) => return Err(error),
        Ok(bytes) => pieces(
            bytes,
            (units * workload.unit_bytes()) as usize,
            &|i, piece| {
                let start = i as u64 * units;
                let end = start + piece.len() as u64 / workload.unit_bytes();
                workload.initial(start..end, piece);
            },
        ),
    }
    pieces(runtime.host_bytes(second)?, PIECE as usize, &|_, piece| {
        piece.fill(POISON)
    });
    Ok(())
}

/// Calls `fill` with each piece of `bytes` and its index, on all cores.
pub(super) fn pieces(bytes: &mut [u8], length: usize, fill: &(dyn Fn(usize, &mut [u8]) + Sync)) {
    let pieces = bytes.chunks_mut(length).enumerate().collect();
    parallel::map(pieces, |(i, piece)| fill(i, piece));
}

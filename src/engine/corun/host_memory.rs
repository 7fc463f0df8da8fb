//! Filling host memory on all cores. Touching every page in the setup keeps page
//! faults out of the first step.

use crate::parallel;
use crate::runtime::{HostMemoryId, Runtime, RuntimeError};

/// What memory that nothing wrote shows: a NaN in either precision.
const POISON: u8 = 0xff;

/// Bytes that one thread fills at a time.
pub const PIECE: u64 = 256 << 10;

/// A memory's bytes; `None` in a simulation without data.
pub fn data(
    runtime: &mut dyn Runtime,
    memory: HostMemoryId,
) -> Result<Option<&mut [u8]>, RuntimeError> {
    match runtime.host_bytes(memory) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(RuntimeError::NoData) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Fills a memory so that reading what was never written shows.
pub fn poison(runtime: &mut dyn Runtime, memory: HostMemoryId) -> Result<(), RuntimeError> {
    if let Some(bytes) = data(runtime, memory)? {
        pieces(bytes, PIECE as usize, &|_, piece| piece.fill(POISON));
    }
    Ok(())
}

/// Calls `fill` with each piece of `bytes` and its index, on all cores.
pub fn pieces(bytes: &mut [u8], length: usize, fill: &(dyn Fn(usize, &mut [u8]) + Sync)) {
    parallel::pieces(bytes, length, fill);
}

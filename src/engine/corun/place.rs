//! Where a device computes: on the grids in host memory, or in memory of its
//! own, with a ring of held units and buffers to stream others through.

use super::CorunError;
use super::claims::Claims;
use super::held::Held;
use crate::machine::Device;
use crate::runtime::{DeviceId, Memory, QueueId};
use crate::workload::{Divisible, Ring};

/// Chunks that a host-memory device has queued: one runs, one follows without
/// a pause.
const HOST_LANES: usize = 2;

/// Stream buffers of a device: one is written, one computed, one read.
const STREAM_LANES: u64 = 3;

/// Bytes of the shortest chunk worth streaming: long enough (about 0.1 ms at
/// 50 GB/s) to hide three enqueues.
pub const LEAST_STREAM: u64 = 4 << 20;

/// Bytes of the longest streamed chunk: longer ones overlap no better.
const MOST_STREAM: u64 = 32 << 20;

/// The longest streamed chunk is this fraction of the memory limit.
const CHUNK_FRACTION: u64 = 512;

/// At most this fraction of the memory limit is spent on stream buffers.
const STREAM_FRACTION: u64 = 8;

/// A ring's smallest window is this fraction of its slots: 2 % of the memory
/// for launches that stay long against their overhead.
const WINDOW_FRACTION: u64 = 48;

/// A queue and its index within its device.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    pub queue: QueueId,
    pub index: usize,
}

/// Buffers through which pool units are streamed, and their queue.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    pub lane: Lane,
    /// Present versions of a chunk and its halo.
    pub input: Ring,
    /// Next versions of a chunk.
    pub output: Ring,
}

/// A device with memory of its own.
#[derive(Clone, Debug)]
pub struct Own {
    pub held: Held,
    /// Writes and launches of held units.
    pub main: Lane,
    /// Reads of their edges, beside the launches.
    pub edges: Lane,
    pub streams: Vec<Stream>,
    /// Most units of a streamed chunk.
    pub chunk: u64,
}

/// Where a device computes.
#[derive(Clone, Debug)]
pub enum Place {
    Host { lanes: Vec<Lane> },
    Own(Box<Own>),
}

impl Place {
    /// Chunks that may be in flight at once.
    pub fn lanes(&self) -> usize {
        match self {
            Self::Host { lanes } => lanes.len(),
            Self::Own(own) => own.streams.len(),
        }
    }

    /// Most units of one chunk.
    pub fn longest_chunk(&self) -> u64 {
        match self {
            Self::Host { .. } => u64::MAX,
            Self::Own(own) => own.chunk,
        }
    }
}

/// How a device's memory is divided for a workload, in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// Slots of the ring of held units.
    pub slots: u64,
    /// Most units held.
    pub capacity: u64,
    /// Most units of a streamed chunk.
    pub chunk: u64,
}

impl Division {
    /// Divides `limit` bytes for `units` units of `unit_bytes` bytes, of which
    /// no buffer may exceed `largest` bytes. `Err` says how many bytes the
    /// smallest stream buffers need.
    pub fn of(units: u64, unit_bytes: u64, limit: u64, largest: u64) -> Result<Self, u64> {
        let available = limit / unit_bytes;
        let chunk = ((limit / CHUNK_FRACTION).clamp(LEAST_STREAM, MOST_STREAM) / unit_bytes)
            .min(units.div_ceil(8))
            .min(
                (available / STREAM_FRACTION).saturating_sub(2 * STREAM_LANES) / (2 * STREAM_LANES),
            )
            .max(1);
        let streams = STREAM_LANES * (2 * chunk + 2);
        if available <= streams || largest / unit_bytes < chunk + 2 {
            return Err((streams + 1).saturating_mul(unit_bytes));
        }
        let slots = (available - streams)
            .min(2 * units + 3)
            .min(largest / unit_bytes)
            .min(u64::from(u32::MAX / 2));
        let capacity = if slots >= 2 * units + 3 {
            units
        } else {
            Held::capacity(slots, slots / WINDOW_FRACTION).min(units)
        };
        Ok(Self {
            slots,
            capacity,
            chunk,
        })
    }
}

/// Gives a device new queues: a queue with a command that failed, or was
/// skipped because another device's failed, runs nothing any more.
pub fn renew(runtime: &mut Claims, id: DeviceId, place: &mut Place) -> Result<(), CorunError> {
    let lanes: Vec<&mut Lane> = match place {
        Place::Host { lanes } => lanes.iter_mut().collect(),
        Place::Own(own) => {
            let Own {
                main,
                edges,
                streams,
                ..
            } = own.as_mut();
            let streams = streams.iter_mut().map(|stream| &mut stream.lane);
            [main, edges].into_iter().chain(streams).collect()
        }
    };
    for lane in lanes {
        lane.queue = runtime.queue(id)?;
    }
    Ok(())
}

/// The share of a device's memory that is used when no limit is given: drivers
/// and displays keep some.
fn usable(memory: u64) -> u64 {
    memory / 16 * 15
}

/// Creates a device's queues and, on a device with its own memory, buffers.
/// Returns the place and how many units it can hold (`None`: it computes on
/// host memory).
pub fn prepare(
    runtime: &mut Claims,
    id: DeviceId,
    device: &Device,
    workload: &dyn Divisible,
    limit: Option<u64>,
) -> Result<(Place, Option<u64>), CorunError> {
    let mut lanes = 0;
    let mut lane = |runtime: &mut Claims| -> Result<Lane, CorunError> {
        lanes += 1;
        Ok(Lane {
            queue: runtime.queue(id)?,
            index: lanes - 1,
        })
    };
    if device.shares_host_memory {
        let lanes = (0..HOST_LANES)
            .map(|_| lane(runtime))
            .collect::<Result<_, _>>()?;
        return Ok((Place::Host { lanes }, None));
    }
    let unit_bytes = workload.unit_bytes();
    let limit = limit.map_or(usable(device.memory), |l| l.min(usable(device.memory)));
    let division = Division::of(workload.units(), unit_bytes, limit, device.max_allocation)
        .map_err(|needed| CorunError::DeviceMemory {
            device: device.name.clone(),
            limit,
            needed,
        })?;
    let ring = |runtime: &mut Claims, slots: u64| -> Result<Ring, CorunError> {
        Ok(Ring {
            memory: Memory::Device(runtime.alloc(id, slots * unit_bytes)?),
            slots,
            unit: 0,
            slot: 0,
        })
    };
    let held = Held::new(ring(runtime, division.slots)?);
    let main = lane(runtime)?;
    let edges = lane(runtime)?;
    let mut streams = Vec::new();
    for _ in 0..STREAM_LANES {
        streams.push(Stream {
            lane: lane(runtime)?,
            input: ring(runtime, division.chunk + 2)?,
            output: ring(runtime, division.chunk)?,
        });
    }
    let own = Own {
        held,
        main,
        edges,
        streams,
        chunk: division.chunk,
    };
    Ok((Place::Own(Box::new(own)), Some(division.capacity)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ample_memory_holds_everything_in_one_launch() {
        let d = Division::of(1000, 8000, 1 << 30, u64::MAX).unwrap();
        assert_eq!((d.slots, d.capacity), (2003, 1000));
    }

    #[test]
    fn little_memory_holds_nearly_what_it_has() {
        // 2 GiB of a grid of 16384 x 16384 doubles: 16384 rows' worth.
        let d = Division::of(16384, 131_072, 2 << 30, u64::MAX).unwrap();
        let used = d.slots + 3 * (2 * d.chunk + 2);
        assert!(used <= 16384);
        assert!(d.capacity > 15_700, "{d:?}");
    }

    #[test]
    fn memory_too_small_for_one_chunk_says_what_it_needs() {
        assert_eq!(Division::of(100, 1000, 12_999, u64::MAX), Err(13_000));
        let d = Division::of(100, 1000, 13_000, u64::MAX).unwrap();
        assert_eq!((d.capacity, d.chunk), (0, 1));
        assert!(Division::of(100, 1000, 1 << 30, 2000).is_err());
    }
}

//! Where a device computes: on the grids in host memory, or in memory of its
//! own, with a ring of held units and buffers to stream others through.

use super::claims::Claims;
use super::held::Held;
use super::kernel::Images;
use super::product::Store;
use super::{CorunError, Options, Stream};
use crate::machine::Device;
use crate::runtime::{DeviceId, Memory, QueueId, RuntimeError};
use crate::workload::{Data, Divisible, Ring};

/// Chunks that a host-memory device has queued: one runs, one follows without
/// a pause.
const HOST_LANES: usize = 2;

/// Queues that a device streams over when no number is asked for: one is
/// written, one computed, one read.
pub(super) const QUEUES: u32 = 3;

/// More queues than this help no device, and cost memory.
pub const MOST_QUEUES: u32 = 8;

/// Bytes of the shortest chunk worth streaming: long enough (about 0.1 ms at
/// 50 GB/s) to hide three enqueues.
pub const LEAST_STREAM: u64 = 4 << 20;

/// Bytes of the longest streamed chunk: longer ones overlap no better.
pub(super) const MOST_STREAM: u64 = 32 << 20;

/// The longest streamed chunk is this fraction of the memory limit.
pub(super) const CHUNK_FRACTION: u64 = 512;

/// At most this fraction of the memory limit is spent on stream buffers.
pub(super) const STREAM_FRACTION: u64 = 8;

/// A ring's smallest window is this fraction of its slots: 2 % of the memory
/// for launches that stay long against their overhead.
pub const WINDOW_FRACTION: u64 = 48;

/// A queue and its index within its device.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    pub queue: QueueId,
    pub index: usize,
}

/// Buffers through which pool units are streamed, and their queue.
#[derive(Clone, Copy, Debug)]
pub struct StreamLane {
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
    pub streams: Vec<StreamLane>,
    /// Most units of a streamed chunk.
    pub chunk: u64,
}

/// Where a device computes.
#[derive(Clone, Debug)]
pub enum Place {
    Host {
        lanes: Vec<Lane>,
    },
    /// In memory of its own, with part of a grid.
    Own(Box<Own>),
    /// In memory of its own, with part of a matrix.
    Store(Box<Store>),
    /// In memory of its own, with images of a kernel's buffers.
    Images(Box<Images>),
}

impl Place {
    /// Chunks that may be in flight at once.
    pub fn lanes(&self) -> usize {
        match self {
            Self::Host { lanes } => lanes.len(),
            Self::Own(own) => own.streams.len(),
            Self::Store(store) => store.streams.len(),
            Self::Images(images) => images.lanes.len(),
        }
    }

    /// Most units of one chunk.
    pub fn longest_chunk(&self) -> u64 {
        match self {
            Self::Host { .. } | Self::Images(_) => u64::MAX,
            Self::Own(own) => own.chunk,
            Self::Store(store) => store.chunk,
        }
    }

    /// Slots of the ring of held units, if it has one.
    pub fn slots(&self) -> Option<u64> {
        match self {
            Self::Own(own) => Some(own.held.present().slots),
            Self::Host { .. } | Self::Store(_) | Self::Images(_) => None,
        }
    }

    /// Whether it computes in host memory.
    pub fn is_host(&self) -> bool {
        matches!(self, Self::Host { .. })
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
    /// Queues to stream over, each with buffers for a chunk.
    pub queues: u32,
}

impl Division {
    /// Divides `limit` bytes for `units` units of `unit_bytes` bytes, of which
    /// no buffer may exceed `largest` bytes. What `stream` asks for is given
    /// as far as it fits: 1 to [`MOST_QUEUES`] queues, and a chunk of at least
    /// one unit, at most all, and no longer than its buffers have room for.
    /// `Err` says how many bytes the smallest stream buffers need.
    pub fn of(
        units: u64,
        unit_bytes: u64,
        limit: u64,
        largest: u64,
        stream: Stream,
    ) -> Result<Self, u64> {
        let available = limit / unit_bytes;
        let queues = stream.queues.unwrap_or(QUEUES).clamp(1, MOST_QUEUES);
        let lanes = u64::from(queues);
        // Each queue has a chunk with a halo unit on either side, and a chunk.
        let buffers = |chunk: u64| lanes * (2 * chunk + 2);
        let within = |slots: u64| slots.saturating_sub(2 * lanes) / (2 * lanes);
        let chunk = match stream.chunk {
            Some(asked) => asked
                .min(units)
                .min(within(available.saturating_sub(1)))
                .min((largest / unit_bytes).saturating_sub(2)),
            None => ((limit / CHUNK_FRACTION).clamp(LEAST_STREAM, MOST_STREAM) / unit_bytes)
                .min(units.div_ceil(8))
                .min(within(available / STREAM_FRACTION)),
        }
        .max(1);
        if available <= buffers(chunk) || largest / unit_bytes < chunk + 2 {
            return Err((buffers(chunk) + 1).saturating_mul(unit_bytes));
        }
        let slots = (available - buffers(chunk))
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
            queues,
        })
    }
}

/// Bytes of a device's memory that a run uses: `asked` at most, and never all,
/// since drivers and displays keep some.
pub fn memory_limit(memory: u64, asked: Option<u64>) -> u64 {
    let usable = memory / 16 * 15;
    asked.map_or(usable, |asked| asked.min(usable))
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
        Place::Store(store) => store.queues().collect(),
        Place::Images(images) => images.lanes.iter_mut().collect(),
    };
    for lane in lanes {
        lane.queue = runtime.queue(id)?;
    }
    Ok(())
}

/// A device's lanes, opened one after the other.
pub(super) struct Lanes {
    device: DeviceId,
    opened: usize,
}

impl Lanes {
    pub(super) fn of(device: DeviceId) -> Self {
        Self { device, opened: 0 }
    }

    /// The next lane, on a queue of its own.
    pub(super) fn open(&mut self, runtime: &mut Claims) -> Result<Lane, RuntimeError> {
        let queue = runtime.queue(self.device)?;
        let index = self.opened;
        self.opened += 1;
        Ok(Lane { queue, index })
    }
}

/// Creates a device's queues and, on a device with its own memory, buffers.
/// Returns the place and how many units it can hold (`None`: it computes on
/// host memory).
pub fn prepare(
    runtime: &mut Claims,
    id: DeviceId,
    device: &Device,
    workload: &dyn Divisible,
    options: &Options,
) -> Result<(Place, Option<u64>), CorunError> {
    if let (Data::Product(spmv), false) = (workload.data(), device.shares_host_memory) {
        let (store, capacity) = Store::prepare(runtime, id, device, spmv, options)?;
        return Ok((Place::Store(Box::new(store)), Some(capacity)));
    }
    if let (Data::Kernel(user), false) = (workload.data(), device.shares_host_memory) {
        let images = Images::prepare(runtime, id, device, user, options)?;
        return Ok((Place::Images(Box::new(images)), Some(0)));
    }
    let mut lanes = Lanes::of(id);
    if device.shares_host_memory {
        let lanes = (0..HOST_LANES)
            .map(|_| lanes.open(runtime))
            .collect::<Result<_, _>>()?;
        return Ok((Place::Host { lanes }, None));
    }
    let unit_bytes = workload.unit_bytes();
    let limit = memory_limit(device.memory, options.gpu_memory);
    let division = Division::of(
        workload.units(),
        unit_bytes,
        limit,
        device.max_allocation,
        options.stream,
    )
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
    let main = lanes.open(runtime)?;
    let edges = lanes.open(runtime)?;
    let mut streams = Vec::new();
    for _ in 0..division.queues {
        streams.push(StreamLane {
            lane: lanes.open(runtime)?,
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

    const USUAL: Stream = Stream {
        chunk: None,
        queues: None,
    };

    #[test]
    fn ample_memory_holds_everything_in_one_launch() {
        let d = Division::of(1000, 8000, 1 << 30, u64::MAX, USUAL).unwrap();
        assert_eq!((d.slots, d.capacity, d.queues), (2003, 1000, 3));
    }

    #[test]
    fn little_memory_holds_nearly_what_it_has() {
        // 2 GiB of a grid of 16384 x 16384 doubles: 16384 rows' worth.
        let d = Division::of(16384, 131_072, 2 << 30, u64::MAX, USUAL).unwrap();
        let used = d.slots + 3 * (2 * d.chunk + 2);
        assert!(used <= 16384);
        assert!(d.capacity > 15_700, "{d:?}");
    }

    #[test]
    fn memory_too_small_for_one_chunk_says_what_it_needs() {
        assert_eq!(
            Division::of(100, 1000, 12_999, u64::MAX, USUAL),
            Err(13_000)
        );
        let d = Division::of(100, 1000, 13_000, u64::MAX, USUAL).unwrap();
        assert_eq!((d.capacity, d.chunk), (0, 1));
        assert!(Division::of(100, 1000, 1 << 30, 2000, USUAL).is_err());
        let two = Stream {
            chunk: Some(9),
            queues: Some(2),
        };
        assert_eq!(Division::of(100, 1000, 8_999, u64::MAX, two), Err(9_000));
        let d = Division::of(100, 1000, 9_000, u64::MAX, two).unwrap();
        assert_eq!((d.queues, d.chunk), (2, 1));
    }

    #[test]
    fn what_is_asked_for_is_given_as_far_as_it_fits() {
        let of = |chunk, queues, limit, largest| {
            let stream = Stream { chunk, queues };
            let d = Division::of(1000, 1000, limit, largest, stream).unwrap();
            let used = d.slots + u64::from(d.queues) * (2 * d.chunk + 2);
            assert!(used * 1000 <= limit, "{d:?}");
            (d.chunk, d.queues)
        };
        assert_eq!(of(Some(70), Some(2), 1 << 30, u64::MAX), (70, 2));
        assert_eq!(of(Some(5000), Some(1), 1 << 30, u64::MAX), (1000, 1));
        assert_eq!(of(Some(0), Some(0), 1 << 30, u64::MAX), (1, 1));
        assert_eq!(of(Some(70), Some(99), 1 << 30, u64::MAX), (70, 8));
        // 400 units of memory, two queues: 2 x (2 x 98 + 2) + 1 of them.
        assert_eq!(of(Some(500), Some(2), 400_000, u64::MAX), (98, 2));
        // No buffer of more than 50 units: 48, and a halo on either side.
        assert_eq!(of(Some(500), Some(2), 400_000, 50_000), (48, 2));
        let (usual, _) = of(None, Some(1), 400_000, u64::MAX);
        let (fewer, _) = of(None, Some(8), 400_000, u64::MAX);
        assert!(fewer < usual, "{fewer} and {usual}");
    }

    #[test]
    fn never_all_of_a_memory_is_used() {
        assert_eq!(memory_limit(1600, None), 1500);
        assert_eq!(memory_limit(1600, Some(1600)), 1500);
        assert_eq!(memory_limit(1600, Some(700)), 700);
    }
}

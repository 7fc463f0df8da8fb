//! How a device's memory is divided for a grid: a ring of held units, and buffers
//! to stream others through. Pure arithmetic.

use super::ring::{Beside, ample, spare};
use crate::corun::Stream;
use crate::corun::memory::{CHUNK_FRACTION, LEAST_STREAM, MOST_QUEUES, MOST_STREAM, QUEUES};

/// At most this fraction of the memory limit is spent on stream buffers.
const STREAM_FRACTION: u64 = 8;

/// A ring's smallest window is this fraction of its slots: 2 % of the memory
/// for launches that stay long against their overhead.
pub const WINDOW_FRACTION: u64 = 48;

/// A chunk of a superstep has so many of its halos, if half of the memory has room for that:
/// so an eighth of what is written to the device is halo, which belongs to other chunks.
const CHUNK_HALOS: u64 = 16;

/// How a device's memory is divided for a grid, in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridDivision {
    /// Slots of the ring of held units.
    pub slots: u64,
    /// Most units held.
    pub capacity: u64,
    /// Most units of a streamed chunk.
    pub chunk: u64,
    /// Queues to stream over, each with buffers for a chunk.
    pub queues: u32,
}

impl GridDivision {
    /// Divides `limit` bytes for `units` units of `unit_bytes` bytes and a halo of
    /// one unit. No buffer may exceed `largest` bytes. What `stream` asks for is given
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
        let beside = Beside {
            step: 1,
            superstep: 1,
            all: units,
        };
        Self::with_halo(&beside, units, unit_bytes, limit, largest, stream)
    }

    /// The same for other halos, and for supersteps.
    pub fn with_halo(
        beside: &Beside,
        units: u64,
        unit_bytes: u64,
        limit: u64,
        largest: u64,
        stream: Stream,
    ) -> Result<Self, u64> {
        let available = limit / unit_bytes;
        let queues = stream.queues.unwrap_or(QUEUES).clamp(1, MOST_QUEUES);
        let lanes = u64::from(queues);
        // Each queue has a chunk with a halo on either side, and what the first step makes of
        // it.
        let longest_halos = 2 * beside.superstep;
        let (halos, spare) = (
            longest_halos + 2 * (beside.superstep - beside.step),
            spare(beside.superstep),
        );
        let buffers = |chunk: u64| lanes * (2 * chunk + halos);
        let within = |slots: u64| slots.saturating_sub(halos * lanes) / (2 * lanes);
        let chunk = match stream.chunk {
            Some(asked) => asked
                .min(units)
                .min(within(available.saturating_sub(1)))
                .min((largest / unit_bytes).saturating_sub(longest_halos)),
            None => {
                let usual = ((limit / CHUNK_FRACTION).clamp(LEAST_STREAM, MOST_STREAM)
                    / unit_bytes)
                    .min(units.div_ceil(8))
                    .min(within(available / STREAM_FRACTION));
                let of_superstep = (CHUNK_HALOS * beside.superstep)
                    .min(units)
                    .min(within(available / 2));
                match beside.superstep > beside.step {
                    true => usual.max(of_superstep),
                    false => usual,
                }
            }
        }
        .max(1);
        if available <= buffers(chunk) || largest / unit_bytes < chunk + longest_halos {
            return Err((buffers(chunk) + 1).saturating_mul(unit_bytes));
        }
        let slots = (available - buffers(chunk))
            .min(ample(units, beside))
            .min(largest / unit_bytes)
            .min(u64::from(u32::MAX / 2));
        let capacity = if slots >= ample(units, beside) {
            units
        } else {
            slots
                .saturating_sub((slots / WINDOW_FRACTION).max(1) + spare)
                .min(units)
        };
        Ok(Self {
            slots,
            capacity,
            chunk,
            queues,
        })
    }
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
        let d = GridDivision::of(1000, 8000, 1 << 30, u64::MAX, USUAL).unwrap();
        assert_eq!((d.slots, d.capacity, d.queues), (2003, 1000, 3));
    }

    #[test]
    fn little_memory_holds_nearly_what_it_has() {
        // 2 GiB of a grid of 16384 x 16384 doubles: 16384 rows' worth.
        let d = GridDivision::of(16384, 131_072, 2 << 30, u64::MAX, USUAL).unwrap();
        let used = d.slots + 3 * (2 * d.chunk + 2);
        assert!(used <= 16384);
        assert!(d.capacity > 15_700, "{d:?}");
    }

    #[test]
    fn memory_too_small_for_one_chunk_says_what_it_needs() {
        assert_eq!(
            GridDivision::of(100, 1000, 12_999, u64::MAX, USUAL),
            Err(13_000)
        );
        let d = GridDivision::of(100, 1000, 13_000, u64::MAX, USUAL).unwrap();
        assert_eq!((d.capacity, d.chunk), (0, 1));
        assert!(GridDivision::of(100, 1000, 1 << 30, 2000, USUAL).is_err());
        let two = Stream {
            chunk: Some(9),
            queues: Some(2),
        };
        assert_eq!(
            GridDivision::of(100, 1000, 8_999, u64::MAX, two),
            Err(9_000)
        );
        let d = GridDivision::of(100, 1000, 9_000, u64::MAX, two).unwrap();
        assert_eq!((d.queues, d.chunk), (2, 1));
    }

    #[test]
    fn what_is_asked_for_is_given_as_far_as_it_fits() {
        let of = |chunk, queues, limit, largest| {
            let stream = Stream { chunk, queues };
            let d = GridDivision::of(1000, 1000, limit, largest, stream).unwrap();
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
}

//! How a device's memory is divided for a product. Pure arithmetic on the units.

use crate::corun::Stream;
use crate::corun::memory::{CHUNK_FRACTION, MOST_QUEUES, MOST_STREAM, memory_limit};
use crate::machine::Device;
use crate::workload::Divisible;
use crate::workload::spmv::{ENDS, Spmv};

/// Queues that a device streams over when no number is asked for: while one
/// chunk is written, the other is computed and read, which takes a fifth of the
/// time that writing takes. With a third queue chunks would be a third shorter.
const QUEUES: u32 = 2;

/// Bytes of the longest chunk of a small memory, as far as there is room: twice
/// as many as of a grid, for it takes five or six commands, not three, and a
/// driver that enqueues slower than the link carries leaves the link idle. (The
/// last chunks of a step may be as short as a grid's.)
const LEAST_LONGEST: u64 = 8 << 20;

/// At most this fraction of the free memory is spent on stream buffers: four
/// times as much as of grids. Units that cannot be held for it are streamed, but
/// all that is streamed then passes at nearly the link's rate.
const STREAM_FRACTION: u64 = 2;

/// UnitRoom for any so many neighbouring units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitRoom {
    pub units: u64,
    /// The most entries and rows that they have.
    pub entries: u64,
    pub rows: u64,
    /// The most that one unit has.
    pub unit_entries: u64,
    pub unit_rows: u64,
}

impl UnitRoom {
    fn of(spmv: &Spmv, units: u64) -> Self {
        let arrangement = spmv.arrangement();
        let entries = |units| widest(arrangement.unit_entries(), units, |entry| *entry);
        let rows = |units| widest(arrangement.unit_rows(), units, |row| u64::from(*row));
        let one = units.min(1);
        Self {
            units,
            entries: entries(units),
            rows: rows(units),
            unit_entries: entries(one),
            unit_rows: rows(one),
        }
    }

    fn bytes(&self, spmv: &Spmv) -> u64 {
        (self.entries + self.unit_entries) * spmv.entry_bytes()
            + (self.rows + self.unit_rows) * ENDS
    }

    /// Of its largest buffer.
    fn largest(&self, spmv: &Spmv) -> u64 {
        (self.entries + self.unit_entries) * spmv.number()
    }
}

/// The most that any so many neighbouring units have, by their starts.
pub fn widest<T>(starts: &[T], units: u64, number: impl Fn(&T) -> u64) -> u64 {
    let units = units as usize;
    let pairs = starts.iter().zip(starts.get(units..).unwrap_or(&[]));
    pairs
        .map(|(start, end)| number(end) - number(start))
        .max()
        .unwrap_or(0)
}

/// Why a product has no room in a device's memory, if it has none: the bytes
/// that may be used, and those that its vectors, its tables and the smallest
/// chunks need. Without them a device cannot take part.
pub fn lacking(spmv: &Spmv, device: &Device, gpu_memory: Option<u64>) -> Option<(u64, u64)> {
    if device.shares_host_memory {
        return None;
    }
    let limit = memory_limit(device.memory, gpu_memory);
    let division = ProductDivision::of(spmv, limit, device.max_allocation, Stream::default());
    division.err().map(|needed| (limit, needed))
}

/// How a device's memory is divided for a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductDivision {
    pub held: UnitRoom,
    pub chunk: UnitRoom,
    /// Queues to stream over, each with room for a chunk.
    pub queues: u32,
}

impl ProductDivision {
    /// Divides `limit` bytes, of which no buffer may exceed `largest`. What
    /// `stream` asks for is given as far as it fits. `Err` says how many bytes
    /// are needed at least.
    pub fn of(spmv: &Spmv, limit: u64, largest: u64, stream: Stream) -> Result<Self, u64> {
        Self::of_units(spmv, spmv.units(), limit, largest, stream)
    }

    /// The same for so many of the units.
    pub fn of_units(
        spmv: &Spmv,
        units: u64,
        limit: u64,
        largest: u64,
        stream: Stream,
    ) -> Result<Self, u64> {
        let queues = stream.queues.unwrap_or(QUEUES).clamp(1, MOST_QUEUES);
        let matrix = spmv.matrix();
        let (rows, columns) = (matrix.rows().into(), matrix.columns().into());
        let fixed = fixed_bytes(spmv.units(), rows, columns, spmv.number());
        let least = fixed + u64::from(queues) * UnitRoom::of(spmv, 1).bytes(spmv);
        let vector = u64::from(matrix.columns().max(matrix.rows())) * spmv.number();
        if least > limit || vector > largest {
            return Err(least);
        }
        let fits = |count: u64, bytes: u64| {
            let room = UnitRoom::of(spmv, count);
            room.bytes(spmv) <= bytes && room.largest(spmv) <= largest
        };
        let free = limit - fixed;
        let (wanted, most) = chunks(stream, limit, free, (units, spmv.unit_bytes()));
        let most = most / u64::from(queues);
        let chunk = greatest(wanted, |count| fits(count, most)).max(1);
        let chunk = UnitRoom::of(spmv, chunk);
        let left = free - u64::from(queues) * chunk.bytes(spmv);
        Ok(Self {
            held: UnitRoom::of(spmv, greatest(units, |count| fits(count, left))),
            chunk,
            queues,
        })
    }
}

/// How much more than so many average units any neighbouring ones may take.
const UNLIKE: f64 = 1.03;

/// What a memory holds and streams of units of which only the average is known:
/// rather less than [`ProductDivision::of`] says of the units themselves, so that a
/// plan that is made of it can be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductEstimate {
    pub held: u64,
    pub chunk: u64,
    pub queues: u32,
}

impl ProductEstimate {
    /// Of `units` units of `unit_bytes` bytes, beside `fixed` bytes for vectors
    /// and tables, in `limit` bytes. `None` where these leave no room to stream.
    pub fn of(units: u64, unit_bytes: u64, fixed: u64, limit: u64, stream: Stream) -> Option<Self> {
        let queues = stream.queues.unwrap_or(QUEUES).clamp(1, MOST_QUEUES);
        let free = limit.checked_sub(fixed)?;
        let each = (unit_bytes as f64 * UNLIKE).ceil().max(1.0) as u64;
        let (wanted, most) = chunks(stream, limit, free, (units, unit_bytes));
        let most = most / u64::from(queues) / each;
        let chunk = wanted.min(most).max(1);
        let left = free.checked_sub(u64::from(queues) * (chunk + 1) * each)?;
        Some(Self {
            held: (left / each).saturating_sub(1).min(units),
            chunk,
            queues,
        })
    }
}

/// Units of a chunk, and bytes for the chunks of all queues, as far as there is
/// room for them in `free` bytes of `limit`: what is asked for, or the usual.
fn chunks(stream: Stream, limit: u64, free: u64, (units, unit_bytes): (u64, u64)) -> (u64, u64) {
    match stream.chunk {
        Some(asked) => (asked.min(units), free),
        None => {
            let bytes = (limit / CHUNK_FRACTION).clamp(LEAST_LONGEST, MOST_STREAM);
            let wanted = (bytes / unit_bytes.max(1)).min(units.div_ceil(8));
            (wanted, free / STREAM_FRACTION)
        }
    }
}

/// The most numbers that a unit sums.
pub const MOST_SUMS: u64 = 2;

/// Bytes that a product's vectors, sums and tables take of a device's memory.
pub fn fixed_bytes(units: u64, rows: u64, columns: u64, number: u64) -> u64 {
    (columns + rows + MOST_SUMS * units) * number + (units + 1) * 12
}

/// The greatest number up to `most` that fits, if fewer always fit, too; or 0.
fn greatest(most: u64, fits: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = high - (high - low) / 2;
        match fits(middle) {
            true => low = middle,
            false => high = middle - 1,
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::matrices::matrix;
    use crate::workload::spmv;

    const USUAL: Stream = Stream {
        chunk: None,
        queues: None,
    };

    fn product(lengths: &[u32]) -> Spmv {
        let options = spmv::Options {
            unit_weight: Some(64),
            ..spmv::Options::default()
        };
        let matrix = matrix(1000, lengths, 3);
        Spmv::new("", Arc::new(matrix), options).unwrap()
    }

    #[test]
    fn ample_memory_holds_everything() {
        let spmv = product(&[7; 1000]);
        let d = ProductDivision::of(&spmv, 1 << 30, u64::MAX, USUAL).unwrap();
        assert_eq!((d.held.units, d.held.entries), (spmv.units(), 7000));
        assert_eq!((d.queues, d.chunk.units), (2, spmv.units().div_ceil(8)));
    }

    #[test]
    fn half_of_a_small_memory_is_for_chunks_as_long_as_they_may_be() {
        let spmv = product(&[7; 1000]);
        let fixed = fixed_bytes(spmv.units(), 1000, 1000, 8);
        let free = 16_000;
        let d = ProductDivision::of(&spmv, fixed + free, u64::MAX, USUAL).unwrap();
        let chunks = u64::from(d.queues) * d.chunk.bytes(&spmv);
        assert!(
            2 * chunks <= free && 3 * chunks > free,
            "{chunks} of {free}"
        );
        assert!(chunks + d.held.bytes(&spmv) <= free);
    }

    #[test]
    fn an_estimate_is_a_little_less_than_what_fits() {
        let spmv = product(&[7; 1000]);
        let fixed = fixed_bytes(spmv.units(), 1000, 1000, 8);
        let of = |limit| ProductEstimate::of(spmv.units(), spmv.unit_bytes(), fixed, limit, USUAL);
        let all = of(1 << 30).unwrap();
        assert_eq!((all.held, all.queues), (spmv.units(), 2));
        assert_eq!(of(fixed), None);
        for limit in [fixed + 30_000, fixed + 60_000, fixed + 90_000] {
            let exact = ProductDivision::of(&spmv, limit, u64::MAX, USUAL)
                .unwrap()
                .held
                .units;
            let held = of(limit).unwrap().held;
            assert!(held <= exact && held + 12 > exact, "{held} of {exact}");
        }
    }

    #[test]
    fn little_memory_is_used_as_far_as_it_goes() {
        let spmv = product(&[7; 1000]);
        let least = ProductDivision::of(&spmv, 1, u64::MAX, USUAL).unwrap_err();
        assert!(ProductDivision::of(&spmv, least - 1, u64::MAX, USUAL).is_err());
        let bare = ProductDivision::of(&spmv, least, u64::MAX, USUAL).unwrap();
        assert_eq!((bare.held.units, bare.chunk.units), (0, 1));
        let limit = least + 40_000;
        let d = ProductDivision::of(&spmv, limit, u64::MAX, USUAL).unwrap();
        assert!(d.held.units > 10 && d.held.units < spmv.units(), "{d:?}");
        // The vectors do not fit a buffer.
        assert!(ProductDivision::of(&spmv, 1 << 30, 7999, USUAL).is_err());
        let narrow = ProductDivision::of(&spmv, 1 << 30, 8000, USUAL).unwrap();
        assert!(narrow.held.largest(&spmv) <= 8000 && narrow.held.units > 5);
    }
}

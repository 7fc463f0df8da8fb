//! A device's memory for a product: both vectors, the tables of units, the
//! units that it holds, and room to stream others through.
//!
//! The entries and rows of what is held lie in rings, each at its own number
//! modulo the ring's length. So whatever range of units is held, one that stays
//! is where it was, and nothing has to be kept in books. A unit is never
//! wrapped: it may reach beyond the ring's end, where there is room for one.

use std::ops::Range;

use super::super::claims::Claims;
use super::super::place::{
    CHUNK_FRACTION, LEAST_STREAM, Lane, MOST_QUEUES, MOST_STREAM, QUEUES, STREAM_FRACTION,
    memory_limit,
};
use super::super::{CorunError, Options, Stream};
use crate::machine::Device;
use crate::runtime::{BufferId, DeviceId, EventId, Memory};
use crate::workload::Divisible;
use crate::workload::spmv::{ENDS, Placed, Spmv};

/// Room for the entries and rows of some units.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    pub columns: BufferId,
    pub values: BufferId,
    pub ends: BufferId,
    /// Entries and rows of the rings.
    pub entries: u64,
    pub rows: u64,
}

/// A queue with room for a chunk.
#[derive(Clone, Copy, Debug)]
pub struct StoreStream {
    pub lane: Lane,
    pub slots: Slots,
}

/// A device with memory of its own.
#[derive(Clone, Debug)]
pub struct Store {
    /// Writes and launches of held units.
    pub main: Lane,
    /// Reads of what they gave, beside the launches of others.
    pub reads: Lane,
    pub streams: Vec<StoreStream>,
    /// Most units of a streamed chunk.
    pub chunk: u64,
    pub slots: Slots,
    pub unit_entries: BufferId,
    pub unit_rows: BufferId,
    pub sums: BufferId,
    vectors: [BufferId; 2],
    /// Which of them is multiplied with.
    present: usize,
    units: Range<u64>,
    /// The places whose present numbers the device has computed itself.
    pub valid: Range<u64>,
    /// Parts of the vector that it is given in each step, and that others read
    /// of what it computes.
    pub receives: Vec<Range<u64>>,
    pub sends: Vec<Range<u64>>,
    /// Whether it has the whole present vector.
    pub complete: bool,
    /// Events after which it has what it was given of that.
    pub ready: Vec<EventId>,
}

impl Store {
    /// Creates queues and memory; returns how many units it can hold.
    pub fn prepare(
        runtime: &mut Claims,
        id: DeviceId,
        device: &Device,
        spmv: &Spmv,
        options: &Options,
    ) -> Result<(Self, u64), CorunError> {
        let limit = memory_limit(device.memory, options.gpu_memory);
        let division =
            Division::of(spmv, limit, device.max_allocation, options.stream).map_err(|needed| {
                CorunError::DeviceMemory {
                    device: device.name.clone(),
                    limit,
                    needed,
                }
            })?;
        let mut lanes = 0;
        let mut lane = |runtime: &mut Claims| -> Result<Lane, CorunError> {
            lanes += 1;
            Ok(Lane {
                queue: runtime.queue(id)?,
                index: lanes - 1,
            })
        };
        let (main, reads) = (lane(runtime)?, lane(runtime)?);
        let (units, number) = (spmv.units(), spmv.number());
        let matrix = spmv.matrix();
        let held = slots(runtime, id, spmv, &division.held)?;
        let mut streams = Vec::new();
        for _ in 0..division.queues {
            streams.push(StoreStream {
                lane: lane(runtime)?,
                slots: slots(runtime, id, spmv, &division.chunk)?,
            });
        }
        let mut alloc = |count: u64, each: u64| runtime.alloc(id, (count * each).max(1));
        let store = Self {
            main,
            reads,
            streams,
            chunk: division.chunk.units,
            slots: held,
            unit_entries: alloc(units + 1, 8)?,
            unit_rows: alloc(units + 1, 4)?,
            sums: alloc(units, number)?,
            vectors: [
                alloc(matrix.columns().into(), number)?,
                alloc(matrix.rows().into(), number)?,
            ],
            present: 0,
            units: 0..0,
            valid: 0..0,
            receives: Vec::new(),
            sends: Vec::new(),
            complete: true,
            ready: Vec::new(),
        };
        Ok((store, division.held.units))
    }

    /// All its queues.
    pub fn queues(&mut self) -> impl Iterator<Item = &mut Lane> {
        let streams = self.streams.iter_mut().map(|stream| &mut stream.lane);
        [&mut self.main, &mut self.reads].into_iter().chain(streams)
    }

    /// The units held.
    pub fn units(&self) -> Range<u64> {
        self.units.clone()
    }

    /// Changes what is held. Units in both the old range and the new stay; the
    /// others are to be written.
    pub fn hold(&mut self, units: Range<u64>) {
        self.units = units;
    }

    /// As before the first step, once the first vector is written.
    pub fn renew(&mut self) {
        self.present = 0;
        self.units = 0..0;
        self.valid = 0..0;
        self.receives.clear();
        self.sends.clear();
        self.complete = true;
        self.ready.clear();
    }

    /// The vector that is multiplied with.
    pub fn x(&self) -> BufferId {
        self.vectors[self.present]
    }

    /// The vector that results are written to.
    pub fn y(&self) -> BufferId {
        self.vectors[1 - self.present]
    }

    /// The result becomes the vector.
    pub fn turn(&mut self) {
        self.present = 1 - self.present;
        self.complete = false;
        self.ready.clear();
    }

    /// Where units in these slots are computed.
    pub fn placed(&self, slots: &Slots) -> Placed {
        let memory = Memory::Device;
        Placed {
            x: memory(self.x()),
            y: memory(self.y()),
            columns: memory(slots.columns),
            values: memory(slots.values),
            ends: memory(slots.ends),
            unit_entries: memory(self.unit_entries),
            unit_rows: memory(self.unit_rows),
            sums: memory(self.sums),
            entries: slots.entries,
            rows: slots.rows as u32,
        }
    }
}

fn slots(
    runtime: &mut Claims,
    id: DeviceId,
    spmv: &Spmv,
    room: &Room,
) -> Result<Slots, CorunError> {
    let (entries, rows) = (room.entries + room.unit_entries, room.rows + room.unit_rows);
    Ok(Slots {
        columns: runtime.alloc(id, (entries * 4).max(1))?,
        values: runtime.alloc(id, (entries * spmv.number()).max(1))?,
        ends: runtime.alloc(id, (rows * ENDS).max(1))?,
        entries: room.entries.max(1),
        rows: room.rows.max(1),
    })
}

/// Room for any so many neighbouring units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Room {
    units: u64,
    /// The most entries and rows that they have.
    entries: u64,
    rows: u64,
    /// The most that one unit has.
    unit_entries: u64,
    unit_rows: u64,
}

impl Room {
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
fn widest<T>(starts: &[T], units: u64, number: impl Fn(&T) -> u64) -> u64 {
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
    let division = Division::of(spmv, limit, device.max_allocation, Stream::default());
    division.err().map(|needed| (limit, needed))
}

/// How a device's memory is divided for a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Division {
    held: Room,
    chunk: Room,
    /// Queues to stream over, each with room for a chunk.
    queues: u32,
}

impl Division {
    /// Divides `limit` bytes, of which no buffer may exceed `largest`. What
    /// `stream` asks for is given as far as it fits. `Err` says how many bytes
    /// are needed at least.
    fn of(spmv: &Spmv, limit: u64, largest: u64, stream: Stream) -> Result<Self, u64> {
        let units = spmv.units();
        let queues = stream.queues.unwrap_or(QUEUES).clamp(1, MOST_QUEUES);
        let matrix = spmv.matrix();
        let numbers = u64::from(matrix.columns()) + u64::from(matrix.rows()) + units;
        let fixed = numbers * spmv.number() + (units + 1) * 12;
        let least = fixed + u64::from(queues) * Room::of(spmv, 1).bytes(spmv);
        let vector = u64::from(matrix.columns().max(matrix.rows())) * spmv.number();
        if least > limit || vector > largest {
            return Err(least);
        }
        let fits = |count: u64, bytes: u64| {
            let room = Room::of(spmv, count);
            room.bytes(spmv) <= bytes && room.largest(spmv) <= largest
        };
        let free = limit - fixed;
        let (wanted, most) = match stream.chunk {
            Some(asked) => (asked, free),
            None => {
                let bytes = (limit / CHUNK_FRACTION).clamp(LEAST_STREAM, MOST_STREAM);
                let wanted = (bytes / spmv.unit_bytes()).min(units.div_ceil(8));
                (wanted, free / STREAM_FRACTION)
            }
        };
        let most = most / u64::from(queues);
        let chunk = greatest(wanted.min(units), |count| fits(count, most)).max(1);
        let chunk = Room::of(spmv, chunk);
        let left = free - u64::from(queues) * chunk.bytes(spmv);
        Ok(Self {
            held: Room::of(spmv, greatest(units, |count| fits(count, left))),
            chunk,
            queues,
        })
    }
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

/// Neighbouring units' entries or rows in runs that are together in a ring of
/// `length`, too: each run, and where it begins in the ring. `start` says where
/// a unit begins.
pub fn runs(units: &Range<u64>, length: u64, start: impl Fn(u64) -> u64) -> Vec<(Range<u64>, u64)> {
    let mut runs = Vec::new();
    let mut unit = units.start;
    while unit < units.end {
        let lap = start(unit) / length;
        let (mut low, mut high) = (unit + 1, units.end);
        while low < high {
            let middle = low + (high - low) / 2;
            match start(middle) / length > lap {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        let run = start(unit)..start(low);
        if !run.is_empty() {
            runs.push((run.clone(), run.start % length));
        }
        unit = low;
    }
    runs
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::super::layout::without;
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
        let d = Division::of(&spmv, 1 << 30, u64::MAX, USUAL).unwrap();
        assert_eq!((d.held.units, d.held.entries), (spmv.units(), 7000));
        assert_eq!((d.queues, d.chunk.units), (3, spmv.units().div_ceil(8)));
    }

    #[test]
    fn little_memory_is_used_as_far_as_it_goes() {
        let spmv = product(&[7; 1000]);
        let least = Division::of(&spmv, 1, u64::MAX, USUAL).unwrap_err();
        assert!(Division::of(&spmv, least - 1, u64::MAX, USUAL).is_err());
        let bare = Division::of(&spmv, least, u64::MAX, USUAL).unwrap();
        assert_eq!((bare.held.units, bare.chunk.units), (0, 1));
        let limit = least + 40_000;
        let d = Division::of(&spmv, limit, u64::MAX, USUAL).unwrap();
        assert!(d.held.units > 10 && d.held.units < spmv.units(), "{d:?}");
        // The vectors do not fit a buffer.
        assert!(Division::of(&spmv, 1 << 30, 7999, USUAL).is_err());
        let narrow = Division::of(&spmv, 1 << 30, 8000, USUAL).unwrap();
        assert!(narrow.held.largest(&spmv) <= 8000 && narrow.held.units > 5);
    }

    proptest! {
        /// Plays writes of held ranges on a model of a ring: no unit that is
        /// held may be overwritten, and none is wrapped.
        #[test]
        fn whatever_is_held_has_a_place_of_its_own(
            lengths in proptest::collection::vec(0u64..9, 1..60),
            windows in proptest::collection::vec((0usize..60, 1usize..60), 1..12),
        ) {
            let mut starts = vec![0];
            for length in &lengths {
                starts.push(starts[starts.len() - 1] + length);
            }
            let count = lengths.len();
            let window = windows.iter().map(|(_, n)| *n).max().unwrap().min(count);
            let length = widest(&starts, window as u64, |s| *s).max(1);
            let mut ring = vec![None; (length + 9) as usize];
            let mut held = 0..0;
            for (first, n) in windows {
                let first = first % count;
                let units = first as u64..(first + n).min(count) as u64;
                for entering in without(&units, &held) {
                    for (run, at) in runs(&entering, length, |u| starts[u as usize]) {
                        for (i, entry) in run.enumerate() {
                            ring[at as usize + i] = Some(entry);
                        }
                    }
                }
                held = units.clone();
                for unit in units {
                    let own = starts[unit as usize]..starts[unit as usize + 1];
                    let at = own.start % length;
                    for (i, entry) in own.enumerate() {
                        prop_assert_eq!(ring[at as usize + i], Some(entry));
                    }
                }
            }
        }
    }
}

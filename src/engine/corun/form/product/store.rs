//! A device's memory for a product: both vectors, the tables of units, the
//! units that it holds, and room to stream others through.
//!
//! The entries and rows of what is held lie in rings, each at its own number
//! modulo the ring's length. So whatever range of units is held, one that stays
//! is where it was, and no table of places is needed. A unit is never
//! wrapped: it may reach beyond the ring's end, where there is room for one.

use std::ops::Range;

use crate::corun::memory::{CHUNK_FRACTION, MOST_QUEUES, MOST_STREAM, memory_limit};
use crate::corun::{CorunError, Stream};
use crate::machine::Device;
use crate::runtime::{BufferId, DeviceId, EventId, Memory};
use crate::scope::RuntimeScope;
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

impl Slots {
    /// The same memory for units that begin with this entry and this row, so
    /// that they lie at its begin and are not cut where a ring would end: a
    /// ring of as many places as come before them. The very first units fill
    /// the ring as it is.
    pub fn from(self, entry: u64, row: u64) -> Self {
        Self {
            entries: self.entries.max(entry),
            rows: self.rows.max(row),
            ..self
        }
    }
}

/// A device's memory for a product.
#[derive(Clone, Debug)]
pub struct Store {
    /// Room for the entries and rows of held units.
    pub slots: Slots,
    /// Room for a chunk, one for each queue for chunks.
    pub streams: Vec<Slots>,
    pub division: ProductDivision,
    pub unit_entries: BufferId,
    pub unit_rows: BufferId,
    pub sums: BufferId,
    vectors: [BufferId; 2],
    /// Which of them is multiplied with.
    present: usize,
    units: Range<u64>,
    /// The places whose present numbers the device has computed itself.
    pub valid: Range<u64>,
    /// Parts of the vector that it is given in each step from host memory, and from the
    /// memory of these devices.
    pub receives: Vec<Range<u64>>,
    pub from_peers: Vec<(usize, Range<u64>)>,
    /// Parts of what it computes that are read in host memory.
    pub sends: Vec<Range<u64>>,
    /// The launch of this step that computes its own rows.
    pub launched: Option<EventId>,
    /// Whether it has the whole present vector.
    pub complete: bool,
    /// Events after which it has what it was given of that.
    pub ready: Vec<EventId>,
}

impl Store {
    /// Allocates a device's memory.
    pub fn open(
        runtime: &mut RuntimeScope,
        id: DeviceId,
        spmv: &Spmv,
        division: ProductDivision,
    ) -> Result<Self, CorunError> {
        let (units, number) = (spmv.units(), spmv.number());
        let matrix = spmv.matrix();
        let held = slots(runtime, id, spmv, &division.held)?;
        let streams = (0..division.queues)
            .map(|_| slots(runtime, id, spmv, &division.chunk))
            .collect::<Result<_, _>>()?;
        let mut alloc = |count: u64, each: u64| runtime.alloc(id, (count * each).max(1));
        Ok(Self {
            slots: held,
            streams,
            division,
            unit_entries: alloc(units + 1, 8)?,
            unit_rows: alloc(units + 1, 4)?,
            sums: alloc(MOST_SUMS * units, number)?,
            vectors: [
                alloc(matrix.columns().into(), number)?,
                alloc(matrix.rows().into(), number)?,
            ],
            present: 0,
            units: 0..0,
            valid: 0..0,
            receives: Vec::new(),
            from_peers: Vec::new(),
            sends: Vec::new(),
            launched: None,
            complete: true,
            ready: Vec::new(),
        })
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
        self.from_peers.clear();
        self.sends.clear();
        self.launched = None;
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
        self.launched = None;
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
    runtime: &mut RuntimeScope,
    id: DeviceId,
    spmv: &Spmv,
    room: &UnitRoom,
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

    use proptest::prelude::*;

    use super::*;
    use crate::corun::layout::without;
    use crate::matrices::matrix;
    use crate::workload::spmv;

    proptest! {
        #[test]
        fn a_chunk_is_in_one_run_at_the_begin_of_its_memory(
            lengths in proptest::collection::vec(0u64..9, 2..60),
            first in 0usize..60,
            count in 1usize..20,
        ) {
            let mut starts = vec![0];
            for length in &lengths {
                starts.push(starts[starts.len() - 1] + length);
            }
            let first = first % lengths.len();
            let end = (first + count).min(lengths.len());
            let ring = widest(&starts, (end - first) as u64, |s| *s).max(1);
            let slots = Slots {
                columns: BufferId::fresh(),
                values: BufferId::fresh(),
                ends: BufferId::fresh(),
                entries: ring,
                rows: 1,
            };
            let length = slots.from(starts[first], 0).entries;
            let runs = runs(&(first as u64..end as u64), length, |u| starts[u as usize]);
            if starts[first] >= ring {
                prop_assert!(runs.len() <= 1 && runs.iter().all(|(_, at)| *at == 0));
            }
            for (run, at) in runs {
                prop_assert!(at + (run.end - run.start) <= ring + 9);
            }
        }

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

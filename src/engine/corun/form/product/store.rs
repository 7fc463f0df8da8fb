//! A device's memory for a product: both vectors, the tables of units, the
//! units that it holds, and room to stream others through.
//!
//! The entries and rows of what is held lie in rings, each at its own number
//! modulo the ring's length. So whatever range of units is held, one that stays
//! is where it was, and no table of places is needed. A unit is never
//! wrapped: it may reach beyond the ring's end, where there is room for one.

use std::ops::Range;

use super::division::{MOST_SUMS, ProductDivision, UnitRoom};
use crate::corun::CorunError;
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::division::widest;
    use super::*;
    use crate::corun::layout::without;

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
}

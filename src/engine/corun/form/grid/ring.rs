//! The units that a device holds, in one ring of slots.
//!
//! A second grid would halve what a device's memory holds. Instead the next
//! version is written *in front of* the present one, window by window: with `n`
//! units held, and a halo of `h` neighbours' units on either side, in slots
//! `b .. b + n + 2h`, the step's first window of `w` units goes to the `w` free
//! slots just below `b`; after it, the slots of its old versions are free and
//! take the second window, and so on. Each step thus shifts the units down the
//! ring by `w + h` slots. `n + w + 3h` slots hold `n` units; with about twice the
//! slots `w = n` and a step is a single launch.
//!
//! A superstep of `k` steps reads `k` halos on either side. Its first step computes the
//! units held and `k - 1` halos beside them, and each further step one halo less
//! (`superstep`). Pure arithmetic.

use std::ops::Range;

use crate::balance::windows::SPARE;
use crate::corun::Stream;
use crate::corun::layout::length;
use crate::corun::memory::{CHUNK_FRACTION, LEAST_STREAM, MOST_QUEUES, MOST_STREAM, QUEUES};
use crate::corun::step::stages;
use crate::workload::Ring;

/// Units beside those that a device holds: what a step reads of them, and a superstep, on
/// either side, and how many there are in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    /// Units on either side that a unit reads in a step.
    pub step: u64,
    /// The same in a whole superstep.
    pub superstep: u64,
    /// Units of the whole grid.
    pub all: u64,
}

/// Slots of a ring beyond the units and the window: the two halos of the present
/// version, and the lower one of the next.
pub fn spare(halo: u64) -> u64 {
    SPARE * halo
}

/// Slots with which a ring of so many units needs one launch a step.
pub fn ample(units: u64, beside: &Beside) -> u64 {
    2 * (units + beside.superstep - beside.step) + spare(beside.superstep)
}

/// The slots of a ring as balancers count them: those of a ring whose halo is
/// one unit, and which has as large windows.
pub fn counted(slots: u64, halo: u64) -> u64 {
    (slots + SPARE).saturating_sub(spare(halo))
}

/// The ring of a device's held units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldRing {
    /// Where the ring is; `unit`/`slot` say where the present versions lie.
    ring: Ring,
    units: Range<u64>,
    beside: Beside,
}

impl HeldRing {
    /// A ring that holds nothing yet.
    pub fn new(ring: Ring, beside: Beside) -> Self {
        Self {
            ring: Ring {
                unit: 0,
                slot: 0,
                ..ring
            },
            units: 0..0,
            beside,
        }
    }

    /// Most units that `slots` slots can hold with a halo of one unit and windows
    /// of at least `window` units.
    pub fn capacity(slots: u64, window: u64) -> u64 {
        slots.saturating_sub(window.max(1) + SPARE)
    }

    /// The units held.
    pub fn units(&self) -> Range<u64> {
        self.units.clone()
    }

    /// The units beside them.
    pub fn beside(&self) -> Beside {
        self.beside
    }

    /// Where the present versions lie.
    pub fn present(&self) -> Ring {
        self.ring
    }

    /// Where the versions after so many steps go.
    pub fn next(&self, steps: u32) -> Ring {
        let shift = u64::from(steps) * self.shift();
        let slots = self.ring.slots;
        Ring {
            slot: (self.ring.slot + slots - shift % slots) % slots,
            ..self.ring
        }
    }

    /// The versions after so many steps have become the present ones.
    pub fn advance(&mut self, steps: u32) {
        self.ring = self.next(steps);
    }

    /// Units of a window: as many as the free slots allow, and no more than the first step
    /// of a superstep computes.
    pub fn window(&self) -> u64 {
        let Beside {
            step, superstep, ..
        } = self.beside;
        let held = length(&self.units);
        let free = self.ring.slots.saturating_sub(held + spare(superstep));
        free.min(held + 2 * (superstep - step)).max(1)
    }

    /// Slots by which a step shifts the units.
    fn shift(&self) -> u64 {
        self.window() + self.beside.step
    }

    /// The launches of a superstep of so many steps, in the order in which they must run.
    pub fn windows(&self, steps: u32) -> Windows {
        let Beside { step, all, .. } = self.beside;
        let stages = stages(&self.units, steps, (step, all));
        let mut stages: Vec<Range<u64>> = match self.units.is_empty() {
            true => Vec::new(),
            false => stages.collect(),
        };
        stages.reverse();
        let mut windows = Windows {
            left: 0..0,
            stages,
            window: self.window(),
            shift: self.shift(),
            from: self.ring,
        };
        windows.next_stage();
        windows
    }

    /// Changes what is held. Units in both the old range and the new keep
    /// their slots; the slots of the others are to be written.
    pub fn hold(&mut self, units: Range<u64>) {
        let slots = self.ring.slots;
        debug_assert!(slots > length(&units) + spare(self.beside.superstep) || units.is_empty());
        self.ring.slot = self.ring.slot_of(units.start);
        self.ring.unit = units.start;
        self.units = units;
    }
}

/// One launch on held units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    pub units: Range<u64>,
    /// Where the present versions of the units lie, with the halo of a step, and where the
    /// next ones go.
    pub from: Ring,
    pub to: Ring,
    /// Whether it belongs to the last step of the superstep.
    pub is_last: bool,
}

/// Launches on held units, step by step and within a step in windows from the first unit on.
pub struct Windows {
    /// Units of the step that are left.
    left: Range<u64>,
    /// The steps after it, the last one first.
    stages: Vec<Range<u64>>,
    window: u64,
    shift: u64,
    /// What the step reads.
    from: Ring,
}

impl Windows {
    fn next_stage(&mut self) {
        self.left = self.stages.pop().unwrap_or(0..0);
    }

    /// The next launch, if there is one.
    pub fn peek(&self) -> Option<Window> {
        if self.left.is_empty() {
            return None;
        }
        let Range { start, end } = self.left;
        let slots = self.from.slots;
        Some(Window {
            units: start..end.min(start + self.window),
            from: self.from,
            to: Ring {
                slot: (self.from.slot + slots - self.shift % slots) % slots,
                ..self.from
            },
            is_last: self.stages.is_empty(),
        })
    }
}

impl Iterator for Windows {
    type Item = Window;

    fn next(&mut self) -> Option<Window> {
        let window = self.peek()?;
        self.left.start = window.units.end;
        if self.left.is_empty() && !self.stages.is_empty() {
            self.from = window.to;
            self.next_stage();
        }
        Some(window)
    }
}

// How a device's memory is divided for a grid: a ring of held units, and buffers
// to stream others through. Pure arithmetic.

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
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::codelet::{BufferId, Memory};

    fn ring(slots: u64) -> Ring {
        Ring {
            memory: Memory::Device(BufferId::fresh()),
            slots,
            unit: 0,
            slot: 0,
        }
    }

    fn beside(step: u64, size: u64) -> Beside {
        Beside {
            step,
            superstep: step * size,
            all: 1000,
        }
    }

    fn held(slots: u64, beside: Beside) -> HeldRing {
        let mut held = HeldRing::new(ring(slots), beside);
        held.hold(100..110);
        held
    }

    #[test]
    fn twice_the_slots_make_one_launch_a_step() {
        let units = |held: &HeldRing, steps| -> Vec<Range<u64>> {
            held.windows(steps).map(|window| window.units).collect()
        };
        let ample_ring = held(23, beside(1, 1));
        assert_eq!((ample(10, &beside(1, 1)), ample_ring.window()), (23, 10));
        assert_eq!(units(&ample_ring, 1), vec![100..110]);
        let tight = held(16, beside(1, 1));
        assert_eq!(units(&tight, 1), [100..103, 103..106, 106..109, 109..110]);
        let four = beside(2, 4);
        let ample_ring = held(ample(10, &four), four);
        let steps = [94..116, 96..114, 98..112, 100..110];
        assert_eq!(units(&ample_ring, 4), steps);
        assert_eq!(units(&ample_ring, 2), steps[2..]);
        assert_eq!(HeldRing::capacity(16, 3), 10);
        assert_eq!(HeldRing::capacity(3, 1), 0);
    }

    proptest! {
        /// Plays launches on a model of the slots: no window may overwrite a
        /// version that it or a later one still reads, whatever was held
        /// before.
        #[test]
        fn windows_never_overwrite_what_is_still_read(
            halo in 1u64..4,
            size in 1u32..6,
            free in 2u64..57,
            moves in proptest::collection::vec((0u64..30, 0u64..40, 1u32..6), 1..20),
        ) {
            let beside = Beside { step: halo, superstep: halo * u64::from(size), all: 90 };
            let slots = spare(beside.superstep) + free;
            let mut held = HeldRing::new(ring(slots), beside);
            let around = |units: &Range<u64>, halo: u64| {
                units.start.saturating_sub(halo)..(units.end + halo).min(beside.all)
            };
            // What lies in a slot: (unit, version).
            let mut memory: HashMap<u64, (u64, u64)> = HashMap::new();
            let mut version = 0;
            for (start, count, steps) in moves {
                let steps = steps.min(size);
                let count = count.min(free - 1);
                let before = held.units();
                held.hold(start..start + count);
                for unit in around(&held.units(), beside.superstep) {
                    let slot = held.present().slot_of(unit);
                    if before.contains(&unit) && held.units().contains(&unit) {
                        prop_assert_eq!(memory.get(&slot), Some(&(unit, version)));
                    }
                    memory.insert(slot, (unit, version));
                }
                let mut last = held.present();
                for window in held.windows(steps) {
                    if window.from != last {
                        version += 1;
                        last = window.from;
                    }
                    let read = around(&window.units, halo);
                    for unit in read.clone() {
                        let slot = window.from.slot_of(unit);
                        prop_assert_eq!(memory.get(&slot), Some(&(unit, version)));
                    }
                    // All reads of a launch race with all its writes.
                    for unit in window.units.clone() {
                        let to = window.to.slot_of(unit);
                        for read in read.clone() {
                            prop_assert_ne!(window.from.slot_of(read), to);
                        }
                        memory.insert(to, (unit, version + 1));
                    }
                    prop_assert!(!window.is_last || window.to == held.next(steps));
                }
                version += 1;
                held.advance(steps);
                for unit in held.units() {
                    let slot = held.present().slot_of(unit);
                    prop_assert_eq!(memory.get(&slot), Some(&(unit, version)));
                }
            }
        }
    }

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

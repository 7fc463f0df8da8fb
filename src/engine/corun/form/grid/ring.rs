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
use crate::corun::layout::length;
use crate::corun::superstep::stages;
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
}

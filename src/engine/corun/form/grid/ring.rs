//! The units that a device holds, in one ring of slots.
//!
//! A second grid would halve what a device's memory holds. Instead the next
//! version is written *in front of* the present one, window by window: with `n`
//! units held, and a halo of `h` neighbours' units on either side, in slots
//! `b .. b + n + 2h`, the step's first window of `w` units goes to the `w` free
//! slots just below `b`; after it, the slots of its old versions are free and
//! take the second window, and so on. Each step thus shifts the units down the
//! ring by `w + h` slots. `n + w + 3h` slots hold `n` units; with twice the
//! slots `w = n` and a step is a single launch. Pure arithmetic.

use std::ops::Range;

use crate::balance::windows::{SPARE, window};
use crate::engine::corun::layout::length;
use crate::workload::Ring;

/// Slots of a ring beyond the units and the window: the two halos of the present
/// version, and the lower one of the next.
pub fn spare(halo: u64) -> u64 {
    SPARE * halo
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
    halo: u64,
}

impl HeldRing {
    /// A ring that holds nothing yet, for units that each read `halo` units on
    /// either side.
    pub fn new(ring: Ring, halo: u64) -> Self {
        Self {
            ring: Ring {
                unit: 0,
                slot: 0,
                ..ring
            },
            units: 0..0,
            halo,
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

    /// Where the present versions lie.
    pub fn present(&self) -> Ring {
        self.ring
    }

    /// Where the next versions go.
    pub fn next(&self) -> Ring {
        let shift = self.window() + self.halo;
        let slots = self.ring.slots;
        Ring {
            slot: (self.ring.slot + slots - shift % slots) % slots,
            ..self.ring
        }
    }

    /// The next versions have become the present ones.
    pub fn advance(&mut self) {
        self.ring = self.next();
    }

    /// Units of a window: as many as the free slots allow.
    pub fn window(&self) -> u64 {
        window(length(&self.units), counted(self.ring.slots, self.halo))
    }

    /// The step's launches, in the order in which they must run.
    pub fn windows(&self) -> Windows {
        Windows {
            left: self.units(),
            window: self.window(),
        }
    }

    /// Changes what is held. Units in both the old range and the new keep
    /// their slots; the slots of the others are to be written.
    pub fn hold(&mut self, units: Range<u64>) {
        let slots = self.ring.slots;
        debug_assert!(slots > length(&units) + spare(self.halo) || units.is_empty());
        self.ring.slot = self.ring.slot_of(units.start);
        self.ring.unit = units.start;
        self.units = units;
    }
}

/// HeldRing units in windows, from the first on.
pub struct Windows {
    left: Range<u64>,
    window: u64,
}

impl Windows {
    /// The units of those to come.
    pub fn left(&self) -> Range<u64> {
        self.left.clone()
    }
}

impl Iterator for Windows {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        let Range { start, end } = self.left;
        self.left.start = end.min(start + self.window);
        (start < end).then_some(start..self.left.start)
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

    #[test]
    fn twice_the_slots_make_one_launch() {
        let mut held = HeldRing::new(ring(23), 1);
        held.hold(4..14);
        assert_eq!(held.window(), 10);
        assert_eq!(held.windows().next(), Some(4..14));
        let mut tight = HeldRing::new(ring(16), 1);
        tight.hold(4..14);
        assert_eq!(
            tight.windows().collect::<Vec<_>>(),
            [4..7, 7..10, 10..13, 13..14]
        );
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
            free in 2u64..37,
            moves in proptest::collection::vec((0u64..30, 0u64..40), 1..20),
        ) {
            let slots = spare(halo) + free;
            let mut held = HeldRing::new(ring(slots), halo);
            // What lies in a slot: (unit, version).
            let mut memory: HashMap<u64, (u64, u64)> = HashMap::new();
            for (version, (start, count)) in moves.into_iter().enumerate() {
                let version = version as u64;
                let count = count.min(free - 1);
                let before = held.units();
                held.hold(start + halo..start + halo + count);
                for unit in start..start + count + 2 * halo {
                    let slot = held.present().slot_of(unit);
                    if before.contains(&unit) && held.units().contains(&unit) {
                        prop_assert_eq!(memory.get(&slot), Some(&(unit, version)));
                    }
                    memory.insert(slot, (unit, version));
                }
                for window in held.windows() {
                    for unit in window.start - halo..window.end + halo {
                        let slot = held.present().slot_of(unit);
                        prop_assert_eq!(memory.get(&slot), Some(&(unit, version)));
                    }
                    // All reads of a launch race with all its writes.
                    for unit in window.clone() {
                        let to = held.next().slot_of(unit);
                        for read in window.start - halo..window.end + halo {
                            prop_assert_ne!(held.present().slot_of(read), to);
                        }
                        memory.insert(to, (unit, version + 1));
                    }
                }
                held.advance();
            }
        }
    }
}

//! A launch's arguments, decoded, and the addresses of rows.
//!
//! Where a tile keeps the units of its versions between the first and the last.
//!
//! The versions advance together, by a block of units at a time, each one unit behind the
//! version that it is computed from. That version's last two units are needed again when
//! the next block comes: they have slots of their own, for two blocks in turn. The other
//! units of a block are needed at once only, so that the versions share their slots, two
//! in turn.

use crate::HostValue;
use crate::host::{Arguments, Real};

use super::rule::{FromArguments, Mean};

/// The first of the rule's arguments.
const FIRST_OF_RULE: usize = 11;

/// A launch's arguments. `INPUTS` is the number of rows that a row is computed
/// from: 3 in 2-D, where a unit is a row, and 5 in 3-D, where it is a plane.
pub(super) struct Grid<T, const INPUTS: usize, R = Mean<T>> {
    from: *const T,
    to: *mut T,
    /// Unit whose slots are `from_slot` and `to_slot`.
    first: u64,
    from_slot: u64,
    from_slots: u64,
    to_slot: u64,
    to_slots: u64,
    /// Units of the whole grid.
    pub(super) units: u64,
    pub(super) nx: usize,
    pub(super) ny: usize,
    pub(super) rule: R,
}

/// A row to be computed: where its points are read and written.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Row<T, const INPUTS: usize> {
    /// The row's present version; north and south of it; in 3-D below and
    /// above it.
    pub(super) inputs: [*const T; INPUTS],
    pub(super) to: *mut T,
}

impl<T: Copy, const INPUTS: usize> Row<T, INPUTS> {
    /// Copies the point at `x`, which keeps its value.
    ///
    /// # Safety
    /// The row has the point, and nobody else touches it.
    #[inline(always)]
    pub(super) unsafe fn keep(&self, x: usize) {
        // SAFETY: the caller's contract.
        unsafe { *self.to.add(x) = *self.inputs[0].add(x) }
    }

    /// The row that lies `points` further on in the target and all inputs.
    #[inline(always)]
    pub(super) fn further(&self, points: usize) -> Self {
        Self {
            inputs: self.inputs.map(|input| input.wrapping_add(points)),
            to: self.to.wrapping_add(points),
        }
    }

    /// The input that no earlier row has needed: south in 2-D, above in 3-D.
    #[inline(always)]
    pub(super) fn fresh(&self) -> *const T {
        self.inputs[INPUTS - 1]
    }
}

impl<T: Real, const INPUTS: usize, R> Grid<T, INPUTS, R> {
    /// # Panics
    /// When the arguments are not those that the codelet documents, which is a
    /// fault in the caller's code.
    pub(super) fn decode(args: &[HostValue], first: u64) -> Self
    where
        R: FromArguments,
    {
        let args = Arguments {
            codelet: "stencil",
            values: args,
        };
        Self {
            from: args.memory(0),
            to: args.memory(1),
            first,
            from_slot: args.u32(2) as u64,
            from_slots: args.u32(3) as u64,
            to_slot: args.u32(4) as u64,
            to_slots: args.u32(5) as u64,
            units: args.u32(8) as u64,
            nx: args.u32(9),
            ny: args.u32(10),
            rule: R::decode(&args, FIRST_OF_RULE),
        }
    }

    /// Points of a unit.
    fn unit_points(&self) -> usize {
        self.nx * self.ny
    }

    /// Bytes of the rings, all of which a step touches before it returns to the same
    /// unit.
    pub(super) fn working_set(&self) -> u64 {
        let slots = if std::ptr::eq(self.from, self.to.cast_const()) {
            self.from_slots.max(self.to_slots)
        } else {
            self.from_slots + self.to_slots
        };
        slots * (self.unit_points() * size_of::<T>()) as u64
    }

    /// The present version of `unit`, which the launch may read.
    ///
    /// # Safety
    /// The ring is as long as the arguments say.
    #[inline(always)]
    pub(super) unsafe fn source(&self, unit: u64) -> *const T {
        // Added first, because the unit before the launch is `first - 1`.
        let slot = (self.from_slot + self.from_slots + unit - self.first) % self.from_slots;
        // SAFETY: the slot is one of the ring's.
        unsafe { self.from.add(slot as usize * self.unit_points()) }
    }

    /// The next version of `unit`, which is in the launch.
    ///
    /// # Safety
    /// The ring is as long as the arguments say.
    #[inline(always)]
    pub(super) unsafe fn target(&self, unit: u64) -> *mut T {
        let slot = (self.to_slot + unit - self.first) % self.to_slots;
        // SAFETY: the slot is one of the ring's.
        unsafe { self.to.add(slot as usize * self.unit_points()) }
    }

    /// The row `y` of an inner unit; in 3-D an inner row, in 2-D row 0.
    ///
    /// # Safety
    /// That of `HostKernel`.
    #[inline(always)]
    pub(super) unsafe fn row(&self, unit: u64, y: usize) -> Row<T, INPUTS> {
        let at = y * self.nx;
        // SAFETY: an inner unit has both neighbours, and in 3-D an inner row
        // has both within its plane.
        unsafe {
            let here = self.source(unit).add(at);
            let (before, after) = (self.source(unit - 1).add(at), self.source(unit + 1).add(at));
            let mut inputs = [here; INPUTS];
            if INPUTS == 3 {
                inputs[1] = before;
            } else {
                inputs[1] = here.sub(self.nx);
                inputs[2] = here.add(self.nx);
                inputs[3] = before;
            }
            inputs[INPUTS - 1] = after;
            let to = self.target(unit).add(at);
            Row { inputs, to }
        }
    }

    /// Copies the rows of a unit that keep their values.
    ///
    /// # Safety
    /// That of `HostKernel`.
    pub(super) unsafe fn keep_border_rows(&self, unit: u64) {
        let (nx, points) = (self.nx, self.unit_points());
        // SAFETY: both slots hold a whole unit, and they differ.
        unsafe {
            let (from, to) = (self.source(unit), self.target(unit));
            if unit == 0 || unit + 1 == self.units {
                to.copy_from_nonoverlapping(from, points);
            } else if INPUTS == 5 {
                to.copy_from_nonoverlapping(from, nx);
                let last = points - nx;
                to.add(last).copy_from_nonoverlapping(from.add(last), nx);
            }
        }
    }
}

/// Units of a version that the next block needs.
const KEPT: usize = 2;

/// Units of a block. In 2-D they are the rows that are computed together; in
/// 3-D they are planes, and longer blocks leave less of the cache to a tile. Measured
/// (512^3 doubles, 2 to 8 steps): 3 and 4 no faster.
pub(super) const fn block(inputs: usize) -> usize {
    if inputs == super::FIVE { 4 } else { 2 }
}

/// Slots of a superstep: its first version is read and its last one written elsewhere.
pub(super) const fn count(block: usize, steps: usize) -> usize {
    let between = steps - 1;
    let taking_turns = if between < 2 { between } else { 2 };
    taking_turns * (block - KEPT) + between * 2 * KEPT
}

/// The slot of a unit of the version after `step` steps. `number` counts the version's
/// units from the beginning of a block.
#[inline(always)]
pub(super) fn slot(block: usize, step: usize, number: usize) -> usize {
    let (turn, within) = (number / block % 2, number % block);
    let shared = block - KEPT;
    let of_version = (step - 1) * 2 * KEPT + step.min(2) * shared;
    if within >= shared {
        of_version + turn * KEPT + within - shared
    } else {
        (1 - step % 2) * (2 * KEPT + shared) + within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replays a superstep: each version's unit `n` is computed from the units `n - 2` to
    /// `n` of the version before it, counted each from its own beginning.
    #[test]
    fn units_stay_while_they_are_needed() {
        for block in 2..=9 {
            for steps in 1..=9 {
                let mut slots = vec![None; count(block, steps)];
                for begin in (0..6 * block).step_by(block) {
                    for step in 1..=steps {
                        for number in begin..begin + block {
                            if step > 1 {
                                for needed in number.saturating_sub(2)..=number {
                                    let found = slots[slot(block, step - 1, needed)];
                                    assert_eq!(found, Some((step - 1, needed)));
                                }
                            }
                            if step < steps {
                                slots[slot(block, step, number)] = Some((step, number));
                            }
                        }
                    }
                }
                assert!(slots.iter().all(Option::is_some));
            }
        }
    }
}

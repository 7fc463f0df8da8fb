//! Where a tile keeps the units of its versions between the first and the last.
//!
//! The versions advance together, by a block of units at a time, each one unit behind the
//! version that it is computed from. That version's last two units are needed again when
//! the next block comes: they have slots of their own, for two blocks in turn. The other
//! units of a block are needed at once only, so that the versions share their slots, two
//! in turn.

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

//! Supersteps: several steps of a workload between two barriers (temporal blocking). What the
//! engine and balancers call a step is one of them. Pure arithmetic.
//!
//! Whoever computes some units for so many steps reads a halo as many times as wide, and
//! computes units beside its own for all steps but the last: redundant work, for fewer
//! transfers and barriers.

use std::ops::Range;

/// How the steps of a run are divided into supersteps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supersteps {
    /// Steps in all.
    pub steps: u32,
    /// Steps of each superstep but perhaps the last, at least 1.
    pub size: u32,
}

impl Supersteps {
    /// The number of supersteps.
    pub fn count(&self) -> u32 {
        self.steps.div_ceil(self.size)
    }

    /// Steps of a superstep.
    pub fn length(&self, superstep: u32) -> u32 {
        self.done(superstep + 1) - self.done(superstep)
    }

    /// Steps that are done once so many supersteps are.
    pub fn done(&self, supersteps: u32) -> u32 {
        supersteps.saturating_mul(self.size).min(self.steps)
    }
}

/// What is computed in each step of a superstep, so that after the last one `units` are done:
/// in each step `halo` units fewer on either side, as far as there are units.
pub fn stages(
    units: &Range<u64>,
    steps: u32,
    (halo, all): (u64, u64),
) -> impl Iterator<Item = Range<u64>> + use<> {
    let units = units.clone();
    (0..u64::from(steps)).rev().map(move |left| {
        let beside = left * halo;
        units.start.saturating_sub(beside)..all.min(units.end + beside)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_superstep_has_what_is_left() {
        let of = |steps, size| {
            let all = Supersteps { steps, size };
            let lengths = (0..all.count()).map(|superstep| all.length(superstep));
            (lengths.collect::<Vec<_>>(), all.done(2))
        };
        assert_eq!(of(30, 8), (vec![8, 8, 8, 6], 16));
        assert_eq!(of(4, 4), (vec![4], 4));
        assert_eq!(of(3, 9), (vec![3], 3));
        assert_eq!(of(3, 1), (vec![1, 1, 1], 2));
    }

    #[test]
    fn each_step_computes_a_halo_less() {
        let stages = |units, steps, all| stages(&units, steps, (2, all)).collect::<Vec<_>>();
        assert_eq!(stages(6..9, 3, 12), [2..12, 4..11, 6..9]);
        assert_eq!(stages(0..1, 2, 12), [0..3, 0..1]);
        assert_eq!(stages(6..9, 1, 12), [6..9]);
    }
}

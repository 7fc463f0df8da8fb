//! Supersteps: several steps of a workload between two barriers (temporal blocking). Pure
//! arithmetic.
//!
//! Whoever computes some units for so many steps reads a halo as many times as wide, and
//! computes units beside its own for all steps but the last: redundant work, for fewer
//! transfers and barriers.

/// How the steps of a run are divided into supersteps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supersteps {
    /// Steps in all.
    pub steps: u32,
    /// Steps of each superstep but perhaps the last, at least 1.
    pub size: u32,
}

impl Supersteps {
    /// So many steps, at least 1, with barriers after this many, or after all.
    pub fn new(steps: u32, size: u32) -> Self {
        Self {
            steps,
            size: size.clamp(1, steps.max(1)),
        }
    }

    /// Those that are left once some are done.
    pub fn after(&self, supersteps: u32) -> Self {
        Self {
            steps: self.steps - self.done(supersteps),
            size: self.size,
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_superstep_has_what_is_left() {
        let of = |steps, size| {
            let all = Supersteps::new(steps, size);
            let lengths = (0..all.count()).map(|superstep| all.length(superstep));
            (lengths.collect::<Vec<_>>(), all.done(2))
        };
        assert_eq!(of(30, 8), (vec![8, 8, 8, 6], 16));
        assert_eq!(Supersteps::new(30, 8).after(3).count(), 1);
        assert_eq!(of(4, 4), (vec![4], 4));
        assert_eq!(of(3, 9), (vec![3], 3));
        assert_eq!(of(3, 1), (vec![1, 1, 1], 2));
    }
}

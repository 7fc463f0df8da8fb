//! Supersteps: several steps of a workload between two barriers (temporal blocking). Pure
//! arithmetic.
//!
//! Whoever computes some units for so many steps reads a halo as many times as wide, and
//! computes units beside its own for all steps but the last: redundant work, for fewer
//! transfers and barriers.

/// How the steps of a run, or those that are left of it, are divided into supersteps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supersteps {
    /// Steps of the whole run.
    all: u32,
    /// Most steps of a superstep, at least 1.
    size: u32,
    /// A superstep ends after each multiple of so many steps, at least `size`.
    period: u32,
    /// Supersteps of the run that come before these.
    before: u32,
}

impl Supersteps {
    /// So many steps, at least 1, with barriers after this many, or after all.
    pub fn new(steps: u32, size: u32) -> Self {
        let size = size.clamp(1, steps.max(1));
        Self {
            all: steps,
            size,
            period: steps.max(1),
            before: 0,
        }
    }

    /// The same with a barrier after each multiple of `period` steps, at least 1, too.
    pub fn with_period(self, period: u32) -> Self {
        let period = period.clamp(1, self.all.max(1));
        Self {
            size: self.size.min(period),
            period,
            ..self
        }
    }

    /// The same in supersteps of so many steps, as far as the period allows.
    pub fn with_size(self, size: u32) -> Self {
        Self {
            size: size.clamp(1, self.period),
            ..self
        }
    }

    /// At most so many steps of them, at least 1.
    pub fn at_most(&self, steps: u32) -> Self {
        Self {
            all: (self.since_begin(self.before).saturating_add(steps)).min(self.all),
            ..*self
        }
    }

    /// Those that are left once some are done.
    pub fn after(&self, supersteps: u32) -> Self {
        Self {
            before: self.before + supersteps,
            ..*self
        }
    }

    /// The number of steps.
    pub fn steps(&self) -> u32 {
        self.all - self.since_begin(self.before)
    }

    /// Most steps of a superstep.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Steps after each multiple of which a superstep ends.
    pub fn period(&self) -> u32 {
        self.period
    }

    /// The number of supersteps.
    pub fn count(&self) -> u32 {
        let (periods, rest) = (self.all / self.period, self.all % self.period);
        periods * self.each() + rest.div_ceil(self.size) - self.before
    }

    /// Steps of a superstep.
    pub fn length(&self, superstep: u32) -> u32 {
        self.done(superstep + 1) - self.done(superstep)
    }

    /// The lengths of the whole run's supersteps, and how many have each.
    pub fn lengths(&self) -> impl Iterator<Item = (u32, u32)> {
        let (periods, rest) = (self.all / self.period, self.all % self.period);
        let cut = |steps: u32, times: u32| {
            [
                (self.size, steps / self.size * times),
                (steps % self.size, times),
            ]
        };
        let both = cut(self.period, periods).into_iter().chain(cut(rest, 1));
        both.filter(|(length, count)| *length > 0 && *count > 0)
    }

    /// Steps that are done once so many supersteps are.
    pub fn done(&self, supersteps: u32) -> u32 {
        let supersteps = self.before.saturating_add(supersteps);
        self.since_begin(supersteps) - self.since_begin(self.before)
    }

    /// Whether a superstep ends after a multiple of the period, or with the last step.
    pub fn ends_period(&self, superstep: u32) -> bool {
        let done = self.since_begin(self.before.saturating_add(superstep + 1));
        done.is_multiple_of(self.period) || done == self.all
    }

    /// Supersteps of a period.
    fn each(&self) -> u32 {
        self.period.div_ceil(self.size)
    }

    /// Steps of so many supersteps from the begin of the run.
    fn since_begin(&self, supersteps: u32) -> u32 {
        let (periods, rest) = (supersteps / self.each(), supersteps % self.each());
        let rest = rest.saturating_mul(self.size).min(self.period);
        let steps = periods.saturating_mul(self.period).saturating_add(rest);
        steps.min(self.all)
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
        assert_eq!(of(0, 3), (vec![], 0));
    }

    #[test]
    fn a_superstep_ends_with_each_period() {
        let all = Supersteps::new(23, 4).with_period(10);
        let each = |of: Supersteps| (0..of.count()).map(move |n| of.length(n));
        assert_eq!(each(all).collect::<Vec<_>>(), [4, 4, 2, 4, 4, 2, 3]);
        let ends: Vec<u32> = (0..all.count()).filter(|n| all.ends_period(*n)).collect();
        assert_eq!(ends, [2, 5, 6]);
        // The periods are those of the whole run.
        let left = all.after(1).after(3);
        assert_eq!((left.steps(), left.done(2)), (9, 6));
        assert_eq!(each(left).collect::<Vec<_>>(), [4, 2, 3]);
        assert!(left.ends_period(1) && !left.ends_period(0));
        let lengths = all.lengths().collect::<Vec<_>>();
        assert_eq!(lengths, [(4, 4), (2, 2), (3, 1)]);
        let short = Supersteps::new(7, 5).with_period(2);
        assert_eq!(each(short).collect::<Vec<_>>(), [2, 2, 2, 1]);
        assert_eq!(Supersteps::new(u32::MAX, 2).count(), 1 << 31);
    }
}

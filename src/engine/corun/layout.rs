//! The layout of a step's units: the pool in host memory comes first, then the ranges
//! that devices hold, in the devices' order. Pure arithmetic on ranges.

use std::ops::Range;

use crate::balance::StepPlan;

/// The division of a range of units in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Units in host memory that devices take in chunks.
    pub pool: Range<u64>,
    /// The pool's segments, one for each device, in the devices' order.
    pub segments: Vec<Range<u64>>,
    /// The units that each device holds in its own memory.
    pub held: Vec<Range<u64>>,
}

impl Layout {
    /// All units in host memory, before there is a plan.
    pub fn unplanned(units: &Range<u64>, devices: usize) -> Self {
        let (start, end) = (units.start, units.end);
        Self {
            pool: start..end,
            segments: vec![start..start; devices],
            held: vec![end..end; devices],
        }
    }

    /// The layout of a plan; `None` when the plan is not a division of `units`
    /// among `capacity.len()` devices of these capacities.
    pub fn of(plan: &StepPlan, units: &Range<u64>, capacity: &[u64]) -> Option<Self> {
        if plan.held.len() != capacity.len() || plan.pooled.len() != capacity.len() {
            return None;
        }
        if plan
            .held
            .iter()
            .zip(capacity)
            .any(|(held, most)| held > most)
        {
            return None;
        }
        let mut at = units.start;
        let mut ranges = |counts: &[u64]| -> Option<Vec<Range<u64>>> {
            counts
                .iter()
                .map(|count| {
                    let start = at;
                    at = at.checked_add(*count)?;
                    Some(start..at)
                })
                .collect()
        };
        let segments = ranges(&plan.pooled)?;
        let held = ranges(&plan.held)?;
        let pool = units.start..segments.last().map_or(units.start, |s| s.end);
        (at == units.end).then_some(Self {
            pool,
            segments,
            held,
        })
    }

    /// The devices that hold units, if they hold all.
    pub fn holders(&self) -> Option<Vec<usize>> {
        let holds = |device: &usize| !self.held[*device].is_empty();
        let holders = || (0..self.held.len()).filter(holds).collect();
        (self.pool.is_empty()).then(holders)
    }

    /// The number of units that are in another place than in `before`.
    pub fn moved_since(&self, before: &Self) -> u64 {
        self.held
            .iter()
            .zip(&before.held)
            .map(|(now, then)| {
                let [low, high] = without(now, then);
                length(&low) + length(&high) + {
                    let [low, high] = without(then, now);
                    length(&low) + length(&high)
                }
            })
            .sum::<u64>()
            .div_ceil(2)
    }
}

/// The number of units of a range.
pub fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// The parts of `range` below and above `other`.
pub fn without(range: &Range<u64>, other: &Range<u64>) -> [Range<u64>; 2] {
    if range.is_empty() {
        return [0..0, 0..0];
    }
    if other.is_empty() || other.end <= range.start || range.end <= other.start {
        return [range.clone(), 0..0];
    }
    [
        range.start..other.start.max(range.start),
        other.end.min(range.end)..range.end,
    ]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pool_first_then_held_in_order() {
        let plan = StepPlan {
            held: vec![0, 5, 2],
            pooled: vec![3, 0, 1],
        };
        let layout = Layout::of(&plan, &(0..11), &[0, 5, 9]).unwrap();
        assert_eq!(layout.pool, 0..4);
        assert_eq!(layout.segments, [0..3, 3..3, 3..4]);
        assert_eq!(layout.held, [4..4, 4..9, 9..11]);
        assert_eq!(layout.holders(), None);
    }

    #[test]
    fn plans_that_do_not_divide_the_units_are_refused() {
        let plan = |held: &[u64], pooled: &[u64]| StepPlan {
            held: held.to_vec(),
            pooled: pooled.to_vec(),
        };
        assert!(Layout::of(&plan(&[1], &[1]), &(0..3), &[3]).is_none());
        assert!(Layout::of(&plan(&[2], &[0]), &(0..2), &[1]).is_none());
        assert!(Layout::of(&plan(&[2], &[]), &(0..2), &[2]).is_none());
        assert!(Layout::of(&plan(&[u64::MAX], &[3]), &(0..2), &[u64::MAX]).is_none());
        assert_eq!(
            Layout::of(&plan(&[2], &[0]), &(0..2), &[2])
                .unwrap()
                .holders(),
            Some(vec![0])
        );
    }

    #[test]
    fn the_units_of_a_node_are_divided_where_they_begin() {
        let plan = StepPlan {
            held: vec![0, 4],
            pooled: vec![2, 0],
        };
        let layout = Layout::of(&plan, &(7..13), &[0, 5]).unwrap();
        assert_eq!((layout.pool.clone(), layout.held[1].clone()), (7..9, 9..13));
        assert_eq!(layout.segments, [7..9, 9..9]);
        let plan = StepPlan {
            held: vec![2, 4],
            pooled: vec![0; 2],
        };
        let layout = Layout::of(&plan, &(7..13), &[2, 5]).unwrap();
        assert_eq!(layout.holders(), Some(vec![0, 1]));
        let plan = StepPlan {
            held: vec![6],
            pooled: vec![0],
        };
        let layout = Layout::of(&plan, &(7..13), &[6]).unwrap();
        assert_eq!(layout.holders(), Some(vec![0]));
        assert_eq!(Layout::unplanned(&(7..13), 1).holders(), None);
    }

    proptest! {
        #[test]
        fn a_range_without_another_is_their_difference(
            a in 0u64..20, b in 0u64..20, c in 0u64..20, d in 0u64..20
        ) {
            let (range, other) = (a..a.max(b), c..c.max(d));
            let [low, high] = without(&range, &other);
            for unit in 0..20 {
                let inside = low.contains(&unit) || high.contains(&unit);
                prop_assert_eq!(inside, range.contains(&unit) && !other.contains(&unit));
            }
        }
    }
}

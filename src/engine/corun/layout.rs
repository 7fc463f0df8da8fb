//! The layout of a step's units: the pool in host memory comes first, then the ranges
//! that devices hold, in the devices' order. Pure arithmetic on ranges; and the pool of a step that runs.

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

// The pool of a step: units in host memory that no device has taken yet.
//
// Each device has a segment and takes units from its low end. A device whose
// segment is empty takes from the high end of the largest segment that is left, so
// both devices take contiguous units. Pure data, without effects.

/// Units that no device has taken yet, in disjoint ranges for each device.
#[derive(Clone, Debug)]
pub struct Pool {
    /// A device's segment, and the units of lost devices that were put back into it.
    segments: Vec<Vec<Range<u64>>>,
    /// Units left in each segment.
    left: Vec<u64>,
}

impl Pool {
    /// A pool with one segment for each device.
    pub fn new(segments: &[Range<u64>]) -> Self {
        Self {
            segments: segments
                .iter()
                .map(|s| {
                    if s.is_empty() {
                        Vec::new()
                    } else {
                        vec![s.clone()]
                    }
                })
                .collect(),
            left: segments.iter().map(length).collect(),
        }
    }

    /// Units left, by segment.
    pub fn left(&self) -> &[u64] {
        &self.left
    }

    /// Whether devices have taken all units.
    pub fn is_empty(&self) -> bool {
        self.left.iter().all(|left| *left == 0)
    }

    /// At most `most` contiguous units for a device; `None` when none is left.
    pub fn take(&mut self, device: usize, most: u64) -> Option<Range<u64>> {
        if most == 0 {
            return None;
        }
        if self.left[device] > 0 {
            let own = &mut self.segments[device];
            let first = own.first_mut()?;
            let taken = first.start..first.end.min(first.start.saturating_add(most));
            first.start = taken.end;
            if first.is_empty() {
                own.remove(0);
            }
            self.left[device] -= length(&taken);
            return Some(taken);
        }
        let victim = (0..self.left.len()).max_by_key(|d| self.left[*d])?;
        let other = &mut self.segments[victim];
        let last = other.last_mut()?;
        let taken = last.start.max(last.end.saturating_sub(most))..last.end;
        last.end = taken.start;
        if last.is_empty() {
            other.pop();
        }
        self.left[victim] -= length(&taken);
        Some(taken)
    }

    /// Puts units back into a device's segment.
    pub fn give_back(&mut self, device: usize, units: Range<u64>) {
        self.left[device] += length(&units);
        if !units.is_empty() {
            self.segments[device].push(units);
        }
    }

    /// Moves a device's whole segment to another device.
    pub fn reassign(&mut self, from: usize, to: usize) {
        let ranges = std::mem::take(&mut self.segments[from]);
        self.left[from] = 0;
        for range in ranges {
            self.give_back(to, range);
        }
    }
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

    #[test]
    fn a_device_takes_its_segments_low_end_and_then_other_segments_high_ends() {
        let mut pool = Pool::new(&[0..4, 4..10]);
        assert_eq!(pool.take(0, 3), Some(0..3));
        assert_eq!(pool.take(0, 3), Some(3..4));
        assert_eq!(pool.take(0, 2), Some(8..10));
        assert_eq!(pool.take(1, 9), Some(4..8));
        assert_eq!(pool.take(0, 1), None);
        assert!(pool.is_empty());
    }

    proptest! {
        #[test]
        fn every_unit_is_taken_once(
            sizes in proptest::collection::vec(0u64..30, 1..5),
            asks in proptest::collection::vec((0usize..5, 1u64..9, any::<bool>()), 0..200),
        ) {
            let mut at = 0;
            let segments: Vec<_> = sizes.iter().map(|n| { at += n; at - n..at }).collect();
            let mut pool = Pool::new(&segments);
            let mut seen = vec![0u32; at as usize];
            let finish = (0..at).map(|_| (0, u64::MAX, false));
            for (device, most, fails) in asks.into_iter().chain(finish) {
                let device = device % sizes.len();
                let Some(units) = pool.take(device, most) else { continue };
                prop_assert!(length(&units) <= most);
                if fails {
                    pool.give_back((device + 1) % sizes.len(), units);
                } else {
                    units.for_each(|u| seen[u as usize] += 1);
                }
            }
            prop_assert!(pool.is_empty());
            prop_assert!(seen.iter().all(|n| *n == 1));
        }
    }
}

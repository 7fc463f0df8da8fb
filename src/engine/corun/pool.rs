//! The pool of a step: units in host memory that no device has taken yet.
//!
//! Each device has a segment and takes units from its low end. A device whose
//! segment is empty takes from the high end of the largest segment that is left, so
//! both devices take contiguous units. Pure data, without effects.

use std::ops::Range;

use super::layout::length;

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

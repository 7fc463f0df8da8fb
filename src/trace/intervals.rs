//! Sets of points in time, as sorted disjoint intervals.

use std::ops::Range;

use crate::time::Nanos;

/// A set of instants: sorted, disjoint, none empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intervals(Vec<Range<Nanos>>);

impl Intervals {
    /// The union of any intervals, in any order; empty and reversed ones
    /// contribute nothing.
    pub fn union(intervals: impl IntoIterator<Item = Range<Nanos>>) -> Self {
        let mut sorted: Vec<_> = intervals.into_iter().filter(|i| i.start < i.end).collect();
        sorted.sort_unstable_by_key(|i| i.start);
        let mut merged: Vec<Range<Nanos>> = Vec::with_capacity(sorted.len());
        for interval in sorted {
            match merged.last_mut() {
                Some(last) if interval.start <= last.end => last.end = last.end.max(interval.end),
                _ => merged.push(interval),
            }
        }
        Self(merged)
    }

    /// The instants that are in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut common = Vec::new();
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            let both = x.start.max(y.start)..x.end.min(y.end);
            let x_ends_first = x.end < y.end;
            if both.start < both.end {
                common.push(both);
            }
            if x_ends_first {
                a.next();
            } else {
                b.next();
            }
        }
        Self(common)
    }

    /// Nanoseconds in the set.
    pub fn length(&self) -> Nanos {
        self.0.iter().map(|i| i.end - i.start).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The set as one flag an instant.
    fn instants(intervals: &[Range<Nanos>]) -> Vec<bool> {
        let mut set = vec![false; 64];
        for interval in intervals {
            for t in interval.clone() {
                set[t as usize] = true;
            }
        }
        set
    }

    fn some() -> impl Strategy<Value = Vec<Range<Nanos>>> {
        prop::collection::vec((0u64..60, 0u64..60).prop_map(|(a, b)| a..b), 0..12)
    }

    #[test]
    fn touching_intervals_become_one() {
        assert_eq!(
            Intervals::union([5..9, 0..5, 20..21]),
            Intervals(vec![0..9, 20..21])
        );
    }

    proptest! {
        #[test]
        fn union_is_the_set_of_instants(a in some()) {
            let union = Intervals::union(a.clone());
            prop_assert_eq!(instants(&union.0), instants(&a));
            prop_assert!(union.0.windows(2).all(|w| w[0].end < w[1].start));
            prop_assert_eq!(union.length() as usize, instants(&a).iter().filter(|x| **x).count());
        }

        #[test]
        fn intersection_is_the_common_instants(a in some(), b in some()) {
            let common = Intervals::union(a.clone()).intersection(&Intervals::union(b.clone()));
            let expected: Vec<bool> = instants(&a)
                .iter()
                .zip(instants(&b))
                .map(|(x, y)| *x && y)
                .collect();
            prop_assert_eq!(instants(&common.0), expected);
        }
    }
}

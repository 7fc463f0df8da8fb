//! Sets of times as sorted, disjoint intervals: union, intersection, length.

use crate::time::Nanos;

/// Sorted, disjoint intervals.
pub type Intervals = Vec<(Nanos, Nanos)>;

/// The union of intervals in any order; empty ones are dropped.
pub fn union(mut intervals: Intervals) -> Intervals {
    intervals.retain(|(start, end)| start < end);
    intervals.sort_unstable();
    intervals.dedup_by(|next, last| {
        let joins = next.0 <= last.1;
        if joins {
            last.1 = last.1.max(next.1);
        }
        joins
    });
    intervals
}

/// The intersection of two unions.
pub fn overlap(a: &[(Nanos, Nanos)], b: &[(Nanos, Nanos)]) -> Intervals {
    let (mut i, mut j) = (0, 0);
    let mut common = Intervals::new();
    while i < a.len() && j < b.len() {
        let (start, end) = (a[i].0.max(b[j].0), a[i].1.min(b[j].1));
        if start < end {
            common.push((start, end));
        }
        if a[i].1 < b[j].1 {
            i += 1;
        } else {
            j += 1;
        }
    }
    common
}

/// The total length of a union.
pub fn total(intervals: &[(Nanos, Nanos)]) -> Nanos {
    intervals.iter().map(|(start, end)| end - start).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(raw: &[(u64, u64)]) -> Intervals {
        union(raw.iter().map(|(s, n)| (*s, s + n)).collect())
    }

    proptest! {
        #[test]
        fn agree_with_counting(
            a in proptest::collection::vec((0u64..50, 0u64..9), 0..12),
            b in proptest::collection::vec((0u64..50, 0u64..9), 0..12),
        ) {
            let inside = |raw: &[(u64, u64)], t| raw.iter().any(|(s, n)| (*s..s + n).contains(&t));
            prop_assert_eq!(
                total(&set(&a)),
                (0..60).filter(|t| inside(&a, *t)).count() as u64
            );
            prop_assert_eq!(
                total(&overlap(&set(&a), &set(&b))),
                (0..60).filter(|t| inside(&a, *t) && inside(&b, *t)).count() as u64
            );
        }
    }
}

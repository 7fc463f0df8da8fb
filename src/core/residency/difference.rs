//! Bringing results together by who wrote what.
//!
//! Everyone begins with the same base. A byte that differs from it was written; one that
//! does not is as it would be if it had not been. So of each part's result the bytes that
//! differ are taken.

use std::ops::Range;

/// Bytes compared at a time where nothing differs.
const BLOCK: usize = 4096;

/// What two parts mean that changed the same byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twice {
    /// They have no common result.
    Clashes,
    /// They have one if both wrote the same value.
    MayAgree,
}

/// Takes the bytes of `part` that differ from `base` over into `all`, which began as
/// `base`.
///
/// # Errors
/// The first byte of which `all` has another change already.
pub fn merge(base: &[u8], part: &[u8], all: &mut [u8], twice: Twice) -> Result<(), usize> {
    let blocks = base.chunks(BLOCK).zip(part.chunks(BLOCK));
    for (block, ((base, part), all)) in blocks.zip(all.chunks_mut(BLOCK)).enumerate() {
        if base == part {
            continue;
        }
        for (at, ((base, part), all)) in base.iter().zip(part).zip(all).enumerate() {
            if base == part {
                continue;
            }
            let agrees = twice == Twice::MayAgree && all == part;
            if all != base && !agrees {
                return Err(block * BLOCK + at);
            }
            *all = *part;
        }
    }
    Ok(())
}

/// Whether every byte outside of some ranges, which are in order, is as in `base`.
pub fn unchanged_outside(base: &[u8], part: &[u8], within: &[Range<u64>]) -> bool {
    let mut at = 0;
    for inside in within {
        let (start, end) = (inside.start as usize, inside.end as usize);
        if base.get(at..start) != part.get(at..start) {
            return false;
        }
        at = end;
    }
    base.get(at..) == part.get(at..)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_two_have_changed_is_reported() {
        let base = vec![0; 10_000];
        let mut all = base.clone();
        all[9_000] = 1;
        let mut part = base.clone();
        part[8_999] = 7;
        assert_eq!(merge(&base, &part, &mut all, Twice::Clashes), Ok(()));
        assert_eq!((all[8_999], all[9_000]), (7, 1));
        part[9_000] = 1;
        part[8_999] = 0;
        assert_eq!(merge(&base, &part, &mut all, Twice::Clashes), Err(9_000));
    }

    #[test]
    fn equal_values_agree_where_they_may() {
        let base = vec![0; 10_000];
        let mut all = base.clone();
        let mut part = base.clone();
        part[9_000] = 1;
        assert_eq!(merge(&base, &part, &mut all, Twice::MayAgree), Ok(()));
        assert_eq!(merge(&base, &part, &mut all, Twice::MayAgree), Ok(()));
        part[9_000] = 2;
        part[3] = 4;
        assert_eq!(merge(&base, &part, &mut all, Twice::MayAgree), Err(9_000));
    }

    #[test]
    fn changes_outside_of_slices_are_seen() {
        let base = [0u8; 8];
        let part = [0, 1, 1, 0, 0, 1, 0, 0];
        assert!(unchanged_outside(&base, &part, &[1..3, 5..6]));
        assert!(!unchanged_outside(&base, &part, &[2..3, 5..6]));
        assert!(!unchanged_outside(&base, &part, &[1..3, 6..8]));
        assert!(!unchanged_outside(&base, &part, &[]));
    }

    proptest! {
        #[test]
        fn parts_written_separately_make_the_whole(
            base in prop::collection::vec(any::<u8>(), 1..300),
            owner in prop::collection::vec(0usize..4, 300),
            new in prop::collection::vec(any::<u8>(), 300),
        ) {
            let of = |who: usize| -> Vec<u8> {
                let byte = |i: usize| if owner[i] == who { new[i] } else { base[i] };
                (0..base.len()).map(byte).collect()
            };
            let mut all = base.clone();
            for who in 0..3 {
                prop_assert_eq!(merge(&base, &of(who), &mut all, Twice::Clashes), Ok(()));
            }
            for i in 0..base.len() {
                let expected = if owner[i] < 3 { new[i] } else { base[i] };
                prop_assert_eq!(all[i], expected);
            }
        }
    }
}

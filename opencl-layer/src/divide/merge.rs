//! Brings the results of parts together by the bytes that differ from what all began with.

use std::ops::Range;

/// Bytes that are compared at a time where nothing differs.
const BLOCK: usize = 4096;

/// Takes the bytes of `part` that differ from `base` over into `all`, which began as
/// `base`. Two parts may write the same value.
///
/// # Errors
/// The first byte to which an earlier part wrote another value.
pub fn merge(base: &[u8], part: &[u8], all: &mut [u8]) -> Result<(), usize> {
    let blocks = base.chunks(BLOCK).zip(part.chunks(BLOCK));
    for (block, ((base, part), all)) in blocks.zip(all.chunks_mut(BLOCK)).enumerate() {
        if base == part {
            continue;
        }
        for (at, ((base, part), all)) in base.iter().zip(part).zip(all).enumerate() {
            if base == part {
                continue;
            }
            if all != base && all != part {
                return Err(block * BLOCK + at);
            }
            *all = *part;
        }
    }
    Ok(())
}

/// Whether every byte outside of some ranges, which are in order, is as in `base`.
pub fn unchanged_outside(base: &[u8], part: &[u8], within: &[Range<usize>]) -> bool {
    let mut at = 0;
    for inside in within {
        if base.get(at..inside.start) != part.get(at..inside.start) {
            return false;
        }
        at = inside.end;
    }
    base.get(at..) == part.get(at..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_values_for_a_byte_are_a_clash_and_one_is_not() {
        let base = vec![0; 10_000];
        let mut all = base.clone();
        let mut part = base.clone();
        part[9_000] = 1;
        assert_eq!(merge(&base, &part, &mut all), Ok(()));
        assert_eq!(merge(&base, &part, &mut all), Ok(()));
        part[9_000] = 2;
        part[3] = 4;
        assert_eq!(merge(&base, &part, &mut all), Err(9_000));
    }

    #[test]
    fn parts_that_wrote_apart_make_the_whole() {
        let base: Vec<u8> = (0..9_000_u32).map(|byte| byte as u8).collect();
        let whole: Vec<u8> = base.iter().map(|byte| byte.wrapping_mul(7)).collect();
        let mut all = base.clone();
        for who in 0..3 {
            let byte = |at: usize| if at % 3 == who { whole[at] } else { base[at] };
            let part: Vec<u8> = (0..base.len()).map(byte).collect();
            assert_eq!(merge(&base, &part, &mut all), Ok(()));
        }
        assert_eq!(all, whole);
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
}

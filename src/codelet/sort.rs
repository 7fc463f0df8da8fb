//! Sorting singles. Numbers are scattered into buckets by the leading bits of their keys, and
//! each bucket is sorted by radix.
//!
//! Numbers with the same leading bits are in one bucket, which one thread sorts.
//!
//! ## Arguments
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `given` | memory | numbers, f32 |
//! | 1 | `sorted` | memory | the same numbers in ascending order; overlaps not the others |
//! | 2 | `count` | u64 | how many |
//!
//! There is one unit.

use std::cmp::Ordering;
use std::ops::Range;

use super::host::{Arguments, for_each_piece, map_pieces, piece};
use super::{Codelet, Cost, HostCode, HostValue, Value};

/// Leading bits of a key: the sign, the exponent and some of the fraction.
const LEADING: u32 = 16;

/// Buckets, at most: their numbers fit into a core's cache where there are some 10^8.
const BUCKETS: usize = 1024;

/// Pieces of the numbers for each thread: a thread that is late delays the others less.
const PIECES: usize = 4;

/// Least numbers of a piece, for which its counts of leading bits are worth their time.
const LEAST: usize = 1 << 18;

/// Digits of a key: sorting by each reads and writes all numbers.
const DIGITS: u64 = 4;

/// The key of a number, whose order is that of numbers: that of IEEE 754 (`totalOrder`), but
/// with all that are none at the end, as NumPy has them.
pub fn key(number: &f32) -> u32 {
    const SIGN: u32 = 1 << 31;
    let bits = number.to_bits();
    // In `totalOrder`, negative numbers descend with their bits.
    let total = match bits & SIGN {
        0 => bits | SIGN,
        _ => !bits,
    };
    // What is negative and no number comes first in it, before negative infinity, and has to
    // follow what is positive and no number.
    total.wrapping_sub(!f32::NEG_INFINITY.to_bits())
}

/// The order of numbers, by their keys.
pub fn order(one: &f32, other: &f32) -> Ordering {
    key(one).cmp(&key(other))
}

/// What it costs to sort so many numbers by radix.
pub fn cost(numbers: u64) -> Cost {
    Cost {
        flops: 0.0,
        bytes: (DIGITS * 2 * numbers * size_of::<f32>() as u64) as f64,
    }
}

/// Sorts so many numbers on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    pub numbers: u64,
}

impl Sort {
    /// All numbers.
    pub fn units(&self) -> u64 {
        1
    }

    pub fn cost(&self) -> Cost {
        cost(self.numbers)
    }

    /// The argument after the memories.
    pub fn values(&self) -> [Value; 1] {
        [Value::U64(self.numbers)]
    }

    pub fn codelet() -> Codelet {
        Codelet {
            name: "sort-f32".into(),
            host: Some(HostCode::Shared(run)),
            opencl: None,
            library: None,
        }
    }
}

/// # Safety
/// That of `SharedKernel`.
unsafe fn run(args: &[HostValue], _first: u64, units: Range<u64>, threads: usize) {
    if units.is_empty() {
        return;
    }
    let args = Arguments {
        codelet: "sort-f32",
        values: args,
    };
    let count = args.u64(2);
    // SAFETY: the memories hold so many numbers, and only this call uses the second one.
    let (given, sorted) = unsafe {
        (
            std::slice::from_raw_parts(args.memory::<f32>(0), count),
            std::slice::from_raw_parts_mut(args.memory::<f32>(1), count),
        )
    };
    sort(threads, given, sorted);
}

/// Writes the given numbers in their order to as many others.
fn sort(threads: usize, given: &[f32], sorted: &mut [f32]) {
    let pieces = (PIECES * threads).min(given.len() / LEAST).max(1);
    let of = |number| &given[piece(given.len(), 1, number, pieces)];
    let counts = map_pieces(threads, pieces, |number| {
        let mut counts = vec![0; 1 << LEADING];
        of(number).iter().for_each(|one| counts[leading(one)] += 1);
        counts
    });
    let buckets = Buckets::of(&counts, given.len());
    let to = Numbers(sorted.as_mut_ptr());
    for_each_piece(threads, pieces, |number| {
        let mut next = buckets.begins[number].clone();
        for one in of(number) {
            let at = &mut next[usize::from(buckets.of_leading[leading(one)])];
            // SAFETY: a piece has as many places in a bucket as it has numbers for it. They
            // are disjoint from those of other pieces and buckets, and within the memory.
            unsafe { to.at(*at).write(*one) };
            *at += 1;
        }
    });
    let begins = &buckets.begins[0];
    let ends = begins.iter().copied().skip(1).chain([given.len()]);
    let ranges: Vec<Range<usize>> = begins.iter().zip(ends).map(|(b, end)| *b..end).collect();
    for_each_piece(threads, ranges.len(), |number| {
        let range = &ranges[number];
        // SAFETY: buckets are disjoint, within the memory, and all of their numbers are written.
        let bucket = unsafe { std::slice::from_raw_parts_mut(to.at(range.start), range.len()) };
        radsort::sort_by_key(bucket, key);
    });
}

/// The leading bits of a number's key.
fn leading(number: &f32) -> usize {
    (key(number) >> (u32::BITS - LEADING)) as usize
}

/// Where numbers go.
struct Buckets {
    /// The bucket of leading bits.
    of_leading: Vec<u16>,
    /// By piece and bucket: the place of the piece's first number.
    begins: Vec<Vec<usize>>,
}

impl Buckets {
    /// As many numbers in each bucket as leading bits allow, by how many numbers of each piece
    /// have which ones.
    fn of(counts: &[Vec<usize>], numbers: usize) -> Self {
        let least = numbers.div_ceil(BUCKETS);
        let mut begins = vec![vec![0; BUCKETS]; counts.len()];
        let (mut bucket, mut held) = (0, 0);
        let mut bucket_of = |leading: usize| {
            if held >= least && bucket + 1 < BUCKETS {
                (bucket, held) = (bucket + 1, 0);
            }
            for (begins, counts) in begins.iter_mut().zip(counts) {
                begins[bucket] += counts[leading];
                held += counts[leading];
            }
            bucket as u16
        };
        let of_leading = (0..1 << LEADING).map(&mut bucket_of).collect();
        // From how many numbers to where they begin.
        let mut place = 0;
        for bucket in 0..BUCKETS {
            for of_piece in &mut begins {
                place += std::mem::replace(&mut of_piece[bucket], place);
            }
        }
        Self { of_leading, begins }
    }
}

/// Numbers that threads write at places of their own.
struct Numbers(*mut f32);

// SAFETY: only unsafe code uses the pointer, and sees to it that threads write different numbers.
unsafe impl Sync for Numbers {}

impl Numbers {
    fn at(&self, place: usize) -> *mut f32 {
        self.0.wrapping_add(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::run_on_threads;

    /// Numbers of each kind, in their order.
    #[test]
    fn keys_ascend_with_the_order_of_numbers() {
        let small = f32::from_bits(1);
        let some = [f32::MIN, -1.0, -f32::MIN_POSITIVE, -small, -0.0, 0.0, small];
        let others = [f32::MIN_POSITIVE, 1.0, f32::MAX, f32::INFINITY];
        let none = [0x7f80_0001, 0x7fff_ffff, 0xff80_0001, 0xffff_ffff].map(f32::from_bits);
        let all = [&[f32::NEG_INFINITY], &some[..], &others, &none[..1]].concat();
        for pair in all.windows(2) {
            assert_eq!(order(&pair[0], &pair[1]), Ordering::Less, "{pair:?}");
            assert_eq!(order(&pair[1], &pair[0]), Ordering::Greater, "{pair:?}");
        }
        for number in all[..all.len() - 1].iter() {
            for none in &none {
                assert_eq!(order(number, none), Ordering::Less, "{number} {none}");
            }
        }
        assert_eq!(key(&f32::NEG_INFINITY), 0);
        let given = [&none[..], &all].concat();
        assert!(sorted(2, &given).is_sorted_by(|one, other| order(one, other).is_le()));
    }

    /// What the codelet makes of numbers, in memory that holds none.
    fn sorted(threads: usize, given: &[f32]) -> Vec<f32> {
        let (mut given, mut sorted) = (given.to_vec(), vec![f32::NAN; given.len() + 1]);
        let memory = |of: &mut [f32]| HostValue::Memory {
            address: of.as_mut_ptr().cast(),
            bytes: size_of_val(of) as u64,
        };
        let count = HostValue::U64(given.len() as u64);
        let args = [memory(&mut given), memory(&mut sorted), count];
        run_on_threads(run, &args, 1, threads);
        assert!(sorted.pop().is_some_and(f32::is_nan), "it writes no more");
        sorted
    }

    #[test]
    fn numbers_are_sorted_as_by_comparisons() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        // Of several pieces, with few values, of one value, and with all bits.
        let kinds: [fn(&mut fastrand::Rng) -> f32; 4] = [
            |random| random.f32() - 0.5,
            |random| f32::from(random.u8(..3)) - 1.0,
            |_| -0.0,
            |random| f32::from_bits(random.u32(..)),
        ];
        for (count, threads) in [(0, 2), (1, 2), (1000, 1), (3 * LEAST + 7, 3)] {
            for kind in kinds {
                let given: Vec<f32> = (0..count).map(|_| kind(&mut random)).collect();
                let found = sorted(threads, &given);
                let mut right = given;
                right.sort_by(order);
                let bits = |of: Vec<f32>| of.into_iter().map(f32::to_bits).collect::<Vec<_>>();
                assert!(bits(found) == bits(right), "{count} numbers");
            }
        }
    }
}

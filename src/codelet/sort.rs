//! Sorting singles or doubles. Numbers are scattered into buckets by the leading bits of their keys, and
//! each bucket is sorted by radix.
//!
//! Numbers with the same leading bits are in one bucket, which one thread sorts.
//!
//! ## Arguments
//!
//! | # | argument | type | meaning |
//! |---|---|---|---|
//! | 0 | `given` | memory | numbers, f32 or f64 |
//! | 1 | `sorted` | memory | the same numbers in ascending order; overlaps not the others |
//! | 2 | `count` | u64 | how many in a row |
//! | 3 | `rows` | u64 | rows, each of which is sorted |
//!
//! There is one unit.

use std::cmp::Ordering;
use std::ops::Range;

use bytemuck::Pod;

use super::host::{Arguments, for_each_piece, map_pieces, piece};
use super::{Codelet, Cost, HostCode, HostValue, Precision, Value};

/// Leading bits of a key: the sign, the exponent and some of the fraction.
const LEADING: u32 = 16;

/// Buckets, at most: their numbers fit into a core's cache where there are some 10^8.
const BUCKETS: usize = 1024;

/// Pieces of the numbers for each thread: a thread that is late delays the others less.
const PIECES: usize = 4;

/// Least numbers of a piece, for which its counts of leading bits are worth their time.
const LEAST: usize = 1 << 18;

/// A number that is sorted by its key, whose order is that of numbers: that of IEEE 754
/// (`totalOrder`), but with all that are none at the end, as NumPy has them.
pub trait Sorted: Pod + PartialOrd + Into<f64> + Send + Sync {
    type Key: radsort::Key + Ord + Into<u64>;
    const PRECISION: Precision;
    /// The codelet's name, and its implementation.
    const NAME: &'static str;

    fn key(&self) -> Self::Key;

    /// Its bits, of which equal numbers may have several.
    fn bits(&self) -> u64;

    /// The leading bits of the key.
    fn leading(&self) -> usize {
        (self.key().into() >> (8 * size_of::<Self>() as u32 - LEADING)) as usize
    }
}

macro_rules! sorted {
    ($number:ty, $key:ty, $precision:expr, $name:literal) => {
        impl Sorted for $number {
            type Key = $key;
            const PRECISION: Precision = $precision;
            const NAME: &'static str = $name;

            fn key(&self) -> $key {
                const SIGN: $key = 1 << (<$key>::BITS - 1);
                let bits = self.to_bits();
                // In `totalOrder`, negative numbers descend with their bits.
                let total = match bits & SIGN {
                    0 => bits | SIGN,
                    _ => !bits,
                };
                // What is negative and no number comes first in it, before negative infinity, and
                // has to follow what is positive and no number.
                total.wrapping_sub(!<$number>::NEG_INFINITY.to_bits())
            }

            fn bits(&self) -> u64 {
                self.to_bits().into()
            }
        }
    };
}

sorted!(f32, u32, Precision::F32, "sort-f32");
sorted!(f64, u64, Precision::F64, "sort-f64");

/// The order of numbers, by their keys.
pub fn order<T: Sorted>(one: &T, other: &T) -> Ordering {
    one.key().cmp(&other.key())
}

/// What it costs to sort so many numbers by radix, a byte of their keys after the other: each
/// time, all numbers are read and written.
pub fn cost<T: Sorted>(numbers: u64) -> Cost {
    let bytes = size_of::<T>() as u64;
    Cost {
        flops: 0.0,
        bytes: (bytes * 2 * numbers * bytes) as f64,
    }
}

/// Sorts rows of so many numbers on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    pub rows: u64,
    pub numbers: u64,
}

impl Sort {
    /// All numbers.
    pub fn units(&self) -> u64 {
        1
    }

    pub fn cost<T: Sorted>(&self) -> Cost {
        cost::<T>(self.rows * self.numbers)
    }

    /// The arguments after the memories.
    pub fn values(&self) -> [Value; 2] {
        [Value::U64(self.numbers), Value::U64(self.rows)]
    }

    pub fn codelet<T: Sorted>() -> Codelet {
        Codelet {
            name: T::NAME.into(),
            host: Some(HostCode::Shared(run::<T>)),
            opencl: None,
            library: None,
        }
    }
}

/// # Safety
/// That of `SharedKernel`.
unsafe fn run<T: Sorted>(args: &[HostValue], _first: u64, units: Range<u64>, threads: usize) {
    if units.is_empty() {
        return;
    }
    let args = Arguments {
        codelet: T::NAME,
        values: args,
    };
    let (count, rows) = (args.u64(2), args.u64(3));
    // SAFETY: the memories hold so many numbers, and only this call uses the second one.
    let (given, sorted) = unsafe {
        (
            std::slice::from_raw_parts(args.memory::<T>(0), rows * count),
            std::slice::from_raw_parts_mut(args.memory::<T>(1), rows * count),
        )
    };
    if rows == 1 {
        return sort(threads, given, sorted);
    }
    sorted.copy_from_slice(given);
    let to = Numbers(sorted.as_mut_ptr());
    for_each_piece(threads, rows, |row| {
        // SAFETY: rows are disjoint, and within the memory.
        let row = unsafe { std::slice::from_raw_parts_mut(to.at(row * count), count) };
        radsort::sort_by_key(row, T::key);
    });
}

/// Writes the given numbers in their order to as many others.
fn sort<T: Sorted>(threads: usize, given: &[T], sorted: &mut [T]) {
    let pieces = (PIECES * threads).min(given.len() / LEAST).max(1);
    let of = |number| &given[piece(given.len(), 1, number, pieces)];
    let counts = map_pieces(threads, pieces, |number| {
        let mut counts = vec![0; 1 << LEADING];
        of(number).iter().for_each(|one| counts[one.leading()] += 1);
        counts
    });
    let buckets = Buckets::of(&counts, given.len());
    let to = Numbers(sorted.as_mut_ptr());
    for_each_piece(threads, pieces, |number| {
        let mut next = buckets.begins[number].clone();
        for one in of(number) {
            let at = &mut next[usize::from(buckets.of_leading[one.leading()])];
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
        radsort::sort_by_key(bucket, T::key);
    });
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
struct Numbers<T>(*mut T);

// SAFETY: only unsafe code uses the pointer, and sees to it that threads write different numbers.
unsafe impl<T> Sync for Numbers<T> {}

impl<T> Numbers<T> {
    fn at(&self, place: usize) -> *mut T {
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
        assert_eq!(f32::NEG_INFINITY.key(), 0);
        assert_eq!(f64::NEG_INFINITY.key(), 0);
        let given = [&none[..], &all].concat();
        assert!(sorted(2, &given).is_sorted_by(|one, other| order(one, other).is_le()));
    }

    /// What the codelet makes of numbers, in memory that holds none.
    fn sorted<T: Sorted + From<f32>>(threads: usize, given: &[T]) -> Vec<T> {
        let (mut given, mut sorted) = (given.to_vec(), vec![f32::NAN.into(); given.len() + 1]);
        let memory = |of: &mut [T]| HostValue::Memory {
            address: of.as_mut_ptr().cast(),
            bytes: size_of_val(of) as u64,
        };
        let count = HostValue::U64(given.len() as u64);
        let one = HostValue::U64(1);
        let args = [memory(&mut given), memory(&mut sorted), count, one];
        run_on_threads(run::<T>, &args, 1, threads);
        assert!(
            sorted.pop().is_some_and(|last| last.into().is_nan()),
            "it writes no more"
        );
        sorted
    }

    /// Compares with a sort by comparisons.
    fn agree<T: Sorted + From<f32>>(threads: usize, given: Vec<T>) {
        let found = sorted(threads, &given);
        let mut right = given;
        right.sort_by(order);
        let bits = |of: &[T]| bytemuck::cast_slice::<T, u8>(of).to_vec();
        assert!(
            bits(&found) == bits(&right),
            "{} numbers of {}",
            right.len(),
            T::NAME
        );
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
                // Of a double's bits, those below a single's differ, too.
                let doubles = given.iter().map(|one| {
                    f64::from_bits(f64::from(*one).to_bits() ^ u64::from(one.to_bits() >> 3))
                });
                agree(threads, doubles.collect());
                agree(threads, given);
            }
        }
    }
}

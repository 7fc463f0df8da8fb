//! The sum of a row or of a piece of one.

use std::ops::{Add, Mul};

use crate::host::FromValue;

/// A number's type: `f64` or `f32`.
pub(super) trait Number:
    FromValue + Copy + Add<Output = Self> + Mul<Output = Self> + 'static
{
    /// Its vectors, one type an instruction set.
    #[cfg(target_arch = "x86_64")]
    type Avx2: Gather<Number = Self>;
    #[cfg(target_arch = "x86_64")]
    type Avx512: Gather<Number = Self>;

    const ZERO: Self;

    /// The absolute difference.
    fn distance(self, other: Self) -> Self;

    /// Writes it past the caches, where the processor can. A fence must follow.
    ///
    /// # Safety
    /// That of a write.
    unsafe fn stream(self, to: *mut Self);
}

/// A type with its vectors, and the instruction that writes one past the caches.
macro_rules! number {
    ($number:ty, $avx2:ident, $avx512:ident, $stream:ident) => {
        impl Number for $number {
            #[cfg(target_arch = "x86_64")]
            type Avx2 = super::avx2::$avx2;
            #[cfg(target_arch = "x86_64")]
            type Avx512 = super::avx512::$avx512;

            const ZERO: Self = 0.0;

            #[inline(always)]
            fn distance(self, other: Self) -> Self {
                (self - other).abs()
            }

            #[inline(always)]
            unsafe fn stream(self, to: *mut Self) {
                // SAFETY: the caller's contract; every x86-64 processor has SSE2.
                unsafe {
                    #[cfg(target_arch = "x86_64")]
                    std::arch::x86_64::$stream(to.cast(), self.to_bits().cast_signed());
                    #[cfg(not(target_arch = "x86_64"))]
                    to.write(self);
                }
            }
        }
    };
}

number!(f64, F64x4, F64x8, _mm_stream_si64);
number!(f32, F32x8, F32x16, _mm_stream_si32);

/// Several running sums, or numbers, in one register.
///
/// # Safety
/// Every method needs a processor with the type's instruction set, and must be
/// inlined into a function compiled for it to be fast. Pointers must be valid for
/// the numbers that a method reads.
pub(super) trait Gather: Copy {
    type Number: Number;

    /// Numbers of a register.
    const LANES: usize;

    unsafe fn zero() -> Self;

    /// The next [`Self::LANES`] numbers.
    unsafe fn load(numbers: *const Self::Number) -> Self;

    /// The next `left` numbers, at most [`Self::LANES`], then zeros; nothing beyond
    /// them is read.
    unsafe fn load_first(left: usize, numbers: *const Self::Number) -> Self;

    /// The numbers of `x` at the next [`Self::LANES`] columns: loaded at once where
    /// the columns are consecutive, gathered elsewhere.
    unsafe fn gather(columns: *const u32, x: *const Self::Number) -> Self;

    /// The same at the next `left` columns, at least 1 and less than
    /// [`Self::LANES`], then zeros; nothing beyond them is read.
    unsafe fn gather_first(left: usize, columns: *const u32, x: *const Self::Number) -> Self;

    unsafe fn add(self, other: Self) -> Self;

    /// Adds the products of `values` and `x`.
    unsafe fn add_products(self, values: Self, x: Self) -> Self;

    /// The sum of all lanes.
    unsafe fn sum(self) -> Self::Number;
}

/// The methods of [`Gather`] that are one instruction of any register.
#[cfg(target_arch = "x86_64")]
macro_rules! instructions {
    ($number:ty, $lanes:literal; $zero:ident $load:ident $add:ident) => {
        type Number = $number;
        const LANES: usize = $lanes;

        #[inline(always)]
        unsafe fn zero() -> Self {
            unsafe { Self($zero()) }
        }

        #[inline(always)]
        unsafe fn load(numbers: *const $number) -> Self {
            unsafe { Self($load(numbers)) }
        }

        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            unsafe { Self($add(self.0, other.0)) }
        }
    };
}

#[cfg(target_arch = "x86_64")]
pub(super) use instructions;

/// Entries of the shortest row for which gathers pay off: on AMD's processors they
/// are no faster than single loads, and the sum of a register's lanes costs time. Measured on one Zen 5 core, rows of 12: 0.52 ns an entry against
/// 0.71.
const GATHERED: usize = 24;

/// The same for a row of consecutive columns, which needs no gathers.
const LOADED: usize = 9;

/// Distance in entries between the sum and the prefetch. The processor's own
/// prefetcher follows a stream to the end of a page, and starts again with the next. Measured on 15 cores of a Xeon, in parts of what
/// they read at most: rows of 17 0.58 without and 0.82 with it.
const AHEAD: usize = 512;

/// Entries of a cache line of values in double precision.
pub(super) const LINE: usize = 8;

/// Prefetches a line of values and its columns, [`AHEAD`] of these entries.
#[inline(always)]
pub(super) fn ask_ahead<T>(columns: *const u32, values: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that the program sees, and of an
        // address without memory nothing at all.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(columns.wrapping_add(AHEAD).cast());
            _mm_prefetch::<_MM_HINT_T0>(values.wrapping_add(AHEAD).cast());
        }
    }
}

/// The sum of `count` entries' products.
///
/// # Safety
/// There are as many entries, `x` has their columns, and the processor has `G`.
#[inline(always)]
pub(super) unsafe fn dot<G: Gather>(
    columns: *const u32,
    values: *const G::Number,
    count: usize,
    x: *const G::Number,
) -> G::Number {
    // SAFETY: the caller's contract.
    unsafe {
        // Only a guess where a row's columns do not rise.
        let is_run = || (*columns.add(count - 1)).wrapping_sub(*columns) as usize == count - 1;
        match G::LANES > 1 && (count >= GATHERED || count >= LOADED && is_run()) {
            true => dot_in_vectors::<G>(columns, values, count, x),
            false => dot_one_by_one(columns, values, count, x),
        }
    }
}

/// # Safety
/// As for [`dot`].
#[inline(always)]
unsafe fn dot_in_vectors<G: Gather>(
    columns: *const u32,
    values: *const G::Number,
    count: usize,
    x: *const G::Number,
) -> G::Number {
    // Two chains of additions hide the latency of one.
    // SAFETY: the caller's contract; every entry is visited once.
    unsafe {
        let (mut one, mut other) = (G::zero(), G::zero());
        let mut at = 0;
        while at + G::LANES <= count {
            for line in (at..at + G::LANES).step_by(LINE) {
                ask_ahead(columns.add(line), values.add(line));
            }
            let values = G::load(values.add(at));
            one = one.add_products(values, G::gather(columns.add(at), x));
            (one, other) = (other, one);
            at += G::LANES;
        }
        if at < count {
            let left = count - at;
            ask_ahead(columns.add(at), values.add(at));
            let values = G::load_first(left, values.add(at));
            one = one.add_products(values, G::gather_first(left, columns.add(at), x));
        }
        one.add(other).sum()
    }
}

/// # Safety
/// As for [`dot`].
#[inline(always)]
unsafe fn dot_one_by_one<T: Number>(
    columns: *const u32,
    values: *const T,
    count: usize,
    x: *const T,
) -> T {
    // SAFETY: the caller's contract; every entry is visited once.
    unsafe {
        let product = |i: usize| *values.add(i) * *x.add(*columns.add(i) as usize);
        let mut at = 0;
        let mut sums = [T::ZERO; 4];
        while at + 4 <= count {
            if at % LINE == 0 {
                ask_ahead(columns.add(at), values.add(at));
            }
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = *sum + product(at + i);
            }
            at += 4;
        }
        while at < count {
            sums[0] = sums[0] + product(at);
            at += 1;
        }
        (sums[0] + sums[1]) + (sums[2] + sums[3])
    }
}

/// The sum of the products of `LENGTH` entries: a row among many of the same length,
/// without a branch to predict.
///
/// # Safety
/// As for [`dot`].
#[inline(always)]
pub(super) unsafe fn dot_of<T: Number, const LENGTH: usize>(
    columns: *const u32,
    values: *const T,
    x: *const T,
) -> T {
    ask_ahead(columns, values);
    // Two chains of additions hide the latency of one.
    let mut sums = [T::ZERO; 2];
    for i in 0..LENGTH {
        // SAFETY: the caller's contract.
        let product = unsafe { *values.add(i) * *x.add(*columns.add(i) as usize) };
        sums[i % 2] = sums[i % 2] + product;
    }
    sums[0] + sums[1]
}

/// The sum of `count` numbers.
///
/// # Safety
/// There are as many, and the processor has `G`.
#[inline(always)]
pub(super) unsafe fn sum<G: Gather>(numbers: *const G::Number, count: usize) -> G::Number {
    // SAFETY: the caller's contract.
    unsafe {
        let mut sums = G::zero();
        let mut at = 0;
        // Most rows never enter this loop, which the processor predicts.
        while at + G::LANES < count {
            sums = sums.add(G::load(numbers.add(at)));
            at += G::LANES;
        }
        let last = G::load_first(count - at, numbers.add(at));
        sums.add(last).sum()
    }
}

/// One number: no vectors.
#[derive(Clone, Copy)]
pub(super) struct OneByOne<T>(T);

// SAFETY (every block): the trait's contract.
impl<T: Number> Gather for OneByOne<T> {
    type Number = T;
    const LANES: usize = 1;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self(T::ZERO)
    }

    #[inline(always)]
    unsafe fn load(numbers: *const T) -> Self {
        Self(unsafe { *numbers })
    }

    #[inline(always)]
    unsafe fn load_first(left: usize, numbers: *const T) -> Self {
        match left {
            0 => Self(T::ZERO),
            _ => unsafe { Self::load(numbers) },
        }
    }

    #[inline(always)]
    unsafe fn gather(columns: *const u32, x: *const T) -> Self {
        Self(unsafe { *x.add(*columns as usize) })
    }

    #[inline(always)]
    unsafe fn gather_first(_left: usize, _columns: *const u32, _x: *const T) -> Self {
        // Fewer than one.
        Self(T::ZERO)
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    #[inline(always)]
    unsafe fn add_products(self, values: Self, x: Self) -> Self {
        Self(self.0 + values.0 * x.0)
    }

    #[inline(always)]
    unsafe fn sum(self) -> T {
        self.0
    }
}

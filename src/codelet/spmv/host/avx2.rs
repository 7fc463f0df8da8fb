//! Vectors of AVX2 for products of rows.

use std::arch::x86_64::*;
use std::ops::Range;

use super::Product;
use super::dot::{Gather, Number, instructions};

/// # Safety
/// The processor has AVX2; otherwise as for `walk`.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn walk<T: Number>(product: &Product<T>, units: Range<u64>) {
    // SAFETY: the caller's contract.
    unsafe { super::walk::<T::Avx2>(product, units) }
}

// The helpers below need a processor with AVX2.

/// The lanes of the first `left` doubles.
#[inline(always)]
unsafe fn first_of_doubles(left: usize) -> __m256i {
    // SAFETY: see above.
    unsafe {
        let lanes = _mm256_set_epi64x(3, 2, 1, 0);
        _mm256_cmpgt_epi64(_mm256_set1_epi64x(left as i64), lanes)
    }
}

/// The lanes of the first `left` singles.
#[inline(always)]
unsafe fn first_of_singles(left: usize) -> __m256i {
    // SAFETY: see above.
    unsafe { _mm256_cmpgt_epi32(_mm256_set1_epi32(left as i32), run_from(0)) }
}

/// `first` and the columns that follow it.
#[inline(always)]
unsafe fn run_from(first: u32) -> __m256i {
    // SAFETY: see above.
    unsafe {
        let counting = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
        _mm256_add_epi32(_mm256_set1_epi32(first.cast_signed()), counting)
    }
}

/// Whether the first `count` columns are consecutive from `first` on.
#[inline(always)]
unsafe fn starts_a_run(count: usize, columns: __m256i, first: u32) -> bool {
    // SAFETY: see above.
    unsafe {
        let alike = _mm256_cmpeq_epi32(columns, run_from(first));
        let alike = _mm256_movemask_ps(_mm256_castsi256_ps(alike)) as u32;
        alike.trailing_ones() as usize >= count
    }
}

/// Four doubles.
#[derive(Clone, Copy)]
pub(super) struct F64x4(__m256d);

// SAFETY (every block): the trait's contract gives the instruction set and the
// numbers; masked lanes are not read. Columns are below 2^31, so that gathers may
// read them as signed.
impl Gather for F64x4 {
    instructions!(f64, 4; _mm256_setzero_pd _mm256_loadu_pd _mm256_add_pd);

    #[inline(always)]
    unsafe fn load_first(left: usize, numbers: *const f64) -> Self {
        unsafe { Self(_mm256_maskload_pd(numbers, first_of_doubles(left))) }
    }

    #[inline(always)]
    unsafe fn gather(columns: *const u32, x: *const f64) -> Self {
        unsafe {
            let first = *columns;
            let columns = _mm_loadu_si128(columns.cast());
            let run = _mm256_castsi256_si128(run_from(first));
            Self(match _mm_movemask_epi8(_mm_cmpeq_epi32(columns, run)) {
                0xFFFF => _mm256_loadu_pd(x.add(first as usize)),
                _ => _mm256_i32gather_pd::<8>(x, columns),
            })
        }
    }

    #[inline(always)]
    unsafe fn gather_first(left: usize, columns: *const u32, x: *const f64) -> Self {
        unsafe {
            let mask = first_of_doubles(left);
            let first = *columns;
            let columns = _mm256_maskload_epi32(columns.cast(), first_of_singles(left));
            Self(match starts_a_run(left, columns, first) {
                true => _mm256_maskload_pd(x.add(first as usize), mask),
                false => {
                    let (zero, mask) = (_mm256_setzero_pd(), _mm256_castsi256_pd(mask));
                    let columns = _mm256_castsi256_si128(columns);
                    _mm256_mask_i32gather_pd::<8>(zero, x, columns, mask)
                }
            })
        }
    }

    #[inline(always)]
    unsafe fn add_products(self, values: Self, x: Self) -> Self {
        unsafe { Self(_mm256_add_pd(self.0, _mm256_mul_pd(values.0, x.0))) }
    }

    #[inline(always)]
    unsafe fn sum(self) -> f64 {
        unsafe {
            let (low, high) = (
                _mm256_castpd256_pd128(self.0),
                _mm256_extractf128_pd::<1>(self.0),
            );
            let pair = _mm_add_pd(low, high);
            _mm_cvtsd_f64(_mm_add_sd(pair, _mm_unpackhi_pd(pair, pair)))
        }
    }
}

/// Eight singles.
#[derive(Clone, Copy)]
pub(super) struct F32x8(__m256);

// SAFETY (every block): as above.
impl Gather for F32x8 {
    instructions!(f32, 8; _mm256_setzero_ps _mm256_loadu_ps _mm256_add_ps);

    #[inline(always)]
    unsafe fn load_first(left: usize, numbers: *const f32) -> Self {
        unsafe { Self(_mm256_maskload_ps(numbers, first_of_singles(left))) }
    }

    #[inline(always)]
    unsafe fn gather(columns: *const u32, x: *const f32) -> Self {
        unsafe {
            let first = *columns;
            let columns = _mm256_loadu_si256(columns.cast());
            Self(match starts_a_run(Self::LANES, columns, first) {
                true => _mm256_loadu_ps(x.add(first as usize)),
                false => _mm256_i32gather_ps::<4>(x, columns),
            })
        }
    }

    #[inline(always)]
    unsafe fn gather_first(left: usize, columns: *const u32, x: *const f32) -> Self {
        unsafe {
            let mask = first_of_singles(left);
            let first = *columns;
            let columns = _mm256_maskload_epi32(columns.cast(), mask);
            Self(match starts_a_run(left, columns, first) {
                true => _mm256_maskload_ps(x.add(first as usize), mask),
                false => {
                    let (zero, mask) = (_mm256_setzero_ps(), _mm256_castsi256_ps(mask));
                    _mm256_mask_i32gather_ps::<4>(zero, x, columns, mask)
                }
            })
        }
    }

    #[inline(always)]
    unsafe fn add_products(self, values: Self, x: Self) -> Self {
        unsafe { Self(_mm256_add_ps(self.0, _mm256_mul_ps(values.0, x.0))) }
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        unsafe {
            let (low, high) = (
                _mm256_castps256_ps128(self.0),
                _mm256_extractf128_ps::<1>(self.0),
            );
            let four = _mm_add_ps(low, high);
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }
}

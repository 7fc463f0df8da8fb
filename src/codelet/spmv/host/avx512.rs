//! Sums in vectors of AVX-512F.

use std::arch::x86_64::*;
use std::ops::Range;

use super::dot::{Gather, Number};
use super::product::Product;

/// # Safety
/// The processor has AVX-512F; otherwise as for `walk`.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn walk<T: Number>(product: &Product<T>, units: Range<u64>) {
    // SAFETY: the caller's contract.
    unsafe { super::walk::<T::Avx512>(product, units) }
}

/// Eight sums of doubles.
#[derive(Clone, Copy)]
pub(super) struct F64x8(__m512d);

// SAFETY (every block): the trait's contract gives the instruction set and the
// entries; masked lanes are not read. Columns are below 2^31, so that gathers
// may take them for signed.
impl Gather for F64x8 {
    type Number = f64;
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { Self(_mm512_setzero_pd()) }
    }

    #[inline(always)]
    unsafe fn add_products(self, columns: *const u32, values: *const f64, x: *const f64) -> Self {
        unsafe {
            let columns = _mm256_loadu_si256(columns.cast());
            let gathered = _mm512_i32gather_pd::<8>(columns, x);
            Self(_mm512_fmadd_pd(_mm512_loadu_pd(values), gathered, self.0))
        }
    }

    #[inline(always)]
    unsafe fn add_numbers(self, numbers: *const f64) -> Self {
        unsafe { Self(_mm512_add_pd(self.0, _mm512_loadu_pd(numbers))) }
    }

    #[inline(always)]
    unsafe fn add_last(self, left: usize, numbers: *const f64) -> Self {
        unsafe {
            let mask = ((1u32 << left) - 1) as u8;
            Self(_mm512_add_pd(self.0, _mm512_maskz_loadu_pd(mask, numbers)))
        }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        unsafe { Self(_mm512_add_pd(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn sum(self) -> f64 {
        unsafe { _mm512_reduce_add_pd(self.0) }
    }
}

/// Sixteen sums of singles.
#[derive(Clone, Copy)]
pub(super) struct F32x16(__m512);

// SAFETY (every block): as above.
impl Gather for F32x16 {
    type Number = f32;
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { Self(_mm512_setzero_ps()) }
    }

    #[inline(always)]
    unsafe fn add_products(self, columns: *const u32, values: *const f32, x: *const f32) -> Self {
        unsafe {
            let columns = _mm512_loadu_si512(columns.cast());
            let gathered = _mm512_i32gather_ps::<4>(columns, x);
            Self(_mm512_fmadd_ps(_mm512_loadu_ps(values), gathered, self.0))
        }
    }

    #[inline(always)]
    unsafe fn add_numbers(self, numbers: *const f32) -> Self {
        unsafe { Self(_mm512_add_ps(self.0, _mm512_loadu_ps(numbers))) }
    }

    #[inline(always)]
    unsafe fn add_last(self, left: usize, numbers: *const f32) -> Self {
        unsafe {
            let mask = ((1u32 << left) - 1) as u16;
            Self(_mm512_add_ps(self.0, _mm512_maskz_loadu_ps(mask, numbers)))
        }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        unsafe { Self(_mm512_add_ps(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        unsafe { _mm512_reduce_add_ps(self.0) }
    }
}

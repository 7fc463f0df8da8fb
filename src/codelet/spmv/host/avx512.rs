//! Vectors of AVX-512F for products of rows.

use std::arch::x86_64::*;
use std::ops::Range;

use super::Product;
use super::dot::{Gather, Number, instructions};

/// # Safety
/// The processor has AVX-512F; otherwise as for `walk`.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn walk<T: Number>(product: &Product<T>, units: Range<u64>) {
    // SAFETY: the caller's contract.
    unsafe { super::walk::<T::Avx512>(product, units) }
}

/// `first` and the columns that follow it.
///
/// # Safety
/// The processor has AVX-512F.
#[inline(always)]
unsafe fn run_from(first: u32) -> __m512i {
    // SAFETY: the caller's contract.
    unsafe {
        let counting = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
        _mm512_add_epi32(_mm512_set1_epi32(first.cast_signed()), counting)
    }
}

/// Eight doubles.
#[derive(Clone, Copy)]
pub(super) struct F64x8(__m512d);

// SAFETY (every block): the trait's contract gives the instruction set and the
// numbers; masked lanes are not read. Columns are below 2^31, so that gathers may
// read them as signed.
impl Gather for F64x8 {
    instructions!(f64, 8; _mm512_setzero_pd _mm512_loadu_pd _mm512_add_pd);

    #[inline(always)]
    unsafe fn load_first(left: usize, numbers: *const f64) -> Self {
        unsafe { Self(_mm512_maskz_loadu_pd(((1u32 << left) - 1) as u8, numbers)) }
    }

    #[inline(always)]
    unsafe fn gather(columns: *const u32, x: *const f64) -> Self {
        unsafe {
            let first = *columns;
            let columns = _mm256_loadu_si256(columns.cast());
            let run = _mm512_castsi512_si256(run_from(first));
            Self(
                match _mm256_movemask_epi8(_mm256_cmpeq_epi32(columns, run)) {
                    -1 => _mm512_loadu_pd(x.add(first as usize)),
                    _ => _mm512_i32gather_pd::<8>(columns, x),
                },
            )
        }
    }

    #[inline(always)]
    unsafe fn gather_first(left: usize, columns: *const u32, x: *const f64) -> Self {
        unsafe {
            let mask = ((1u32 << left) - 1) as u8;
            let first = *columns;
            let columns = _mm512_maskz_loadu_epi32(mask.into(), columns.cast());
            let unlike = _mm512_mask_cmpneq_epi32_mask(mask.into(), columns, run_from(first));
            Self(match unlike {
                0 => _mm512_maskz_loadu_pd(mask, x.add(first as usize)),
                _ => {
                    let columns = _mm512_castsi512_si256(columns);
                    _mm512_mask_i32gather_pd::<8>(_mm512_setzero_pd(), mask, columns, x)
                }
            })
        }
    }

    #[inline(always)]
    unsafe fn add_products(self, values: Self, x: Self) -> Self {
        unsafe { Self(_mm512_fmadd_pd(values.0, x.0, self.0)) }
    }

    #[inline(always)]
    unsafe fn sum(self) -> f64 {
        unsafe { _mm512_reduce_add_pd(self.0) }
    }
}

/// Sixteen singles.
#[derive(Clone, Copy)]
pub(super) struct F32x16(__m512);

// SAFETY (every block): as above.
impl Gather for F32x16 {
    instructions!(f32, 16; _mm512_setzero_ps _mm512_loadu_ps _mm512_add_ps);

    #[inline(always)]
    unsafe fn load_first(left: usize, numbers: *const f32) -> Self {
        unsafe { Self(_mm512_maskz_loadu_ps(((1u32 << left) - 1) as u16, numbers)) }
    }

    #[inline(always)]
    unsafe fn gather(columns: *const u32, x: *const f32) -> Self {
        unsafe {
            let first = *columns;
            let columns = _mm512_loadu_si512(columns.cast());
            Self(match _mm512_cmpneq_epi32_mask(columns, run_from(first)) {
                0 => _mm512_loadu_ps(x.add(first as usize)),
                _ => _mm512_i32gather_ps::<4>(columns, x),
            })
        }
    }

    #[inline(always)]
    unsafe fn gather_first(left: usize, columns: *const u32, x: *const f32) -> Self {
        unsafe {
            let mask = ((1u32 << left) - 1) as u16;
            let first = *columns;
            let columns = _mm512_maskz_loadu_epi32(mask, columns.cast());
            Self(
                match _mm512_mask_cmpneq_epi32_mask(mask, columns, run_from(first)) {
                    0 => _mm512_maskz_loadu_ps(mask, x.add(first as usize)),
                    _ => _mm512_mask_i32gather_ps::<4>(_mm512_setzero_ps(), mask, columns, x),
                },
            )
        }
    }

    #[inline(always)]
    unsafe fn add_products(self, values: Self, x: Self) -> Self {
        unsafe { Self(_mm512_fmadd_ps(values.0, x.0, self.0)) }
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        unsafe { _mm512_reduce_add_ps(self.0) }
    }
}

//! Vectors of AVX-512F: a whole cache line each. As in AVX2, maxima are those of bits.

use std::arch::x86_64::*;

use super::lanes::lanes;

lanes! {
    /// Eight doubles.
    F64x8(__m512d): f64, 8;
    _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_stream_pd _mm512_add_pd _mm512_sub_pd
    _mm512_mul_pd;
    magnitude |x| _mm512_abs_pd(x);
    larger |a, b| _mm512_castsi512_pd(_mm512_max_epu64(
        _mm512_castpd_si512(a),
        _mm512_castpd_si512(b),
    ));
    west |centre, before| _mm512_castsi512_pd(_mm512_alignr_epi64::<7>(
        _mm512_castpd_si512(centre),
        _mm512_castpd_si512(before),
    ));
    east |centre, after| _mm512_castsi512_pd(_mm512_alignr_epi64::<1>(
        _mm512_castpd_si512(after),
        _mm512_castpd_si512(centre),
    ))
}

lanes! {
    /// Sixteen singles.
    F32x16(__m512): f32, 16;
    _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_stream_ps _mm512_add_ps _mm512_sub_ps
    _mm512_mul_ps;
    magnitude |x| _mm512_abs_ps(x);
    larger |a, b| _mm512_castsi512_ps(_mm512_max_epu32(
        _mm512_castps_si512(a),
        _mm512_castps_si512(b),
    ));
    west |centre, before| _mm512_castsi512_ps(_mm512_alignr_epi32::<15>(
        _mm512_castps_si512(centre),
        _mm512_castps_si512(before),
    ));
    east |centre, after| _mm512_castsi512_ps(_mm512_alignr_epi32::<1>(
        _mm512_castps_si512(after),
        _mm512_castps_si512(centre),
    ))
}

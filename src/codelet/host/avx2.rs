//! Vectors of AVX2. Its shuffles stay within halves of 128 bits: the half that
//! straddles the two vectors is put together first. A maximum of numbers loses NaN, one of
//! their bits does not (see [`super::exp`]).

use std::arch::x86_64::*;

use super::lanes::lanes;

lanes! {
    /// Four doubles.
    F64x4(__m256d): f64, 4;
    _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_stream_pd _mm256_add_pd _mm256_sub_pd
    _mm256_mul_pd;
    magnitude |x| _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
    larger |a, b| {
        let is_less = _mm256_cmpgt_epi64(_mm256_castpd_si256(b), _mm256_castpd_si256(a));
        _mm256_blendv_pd(a, b, _mm256_castsi256_pd(is_less))
    };
    west |centre, before| {
        let straddle = _mm256_permute2f128_pd::<0x21>(before, centre);
        _mm256_shuffle_pd::<0b0101>(straddle, centre)
    };
    east |centre, after| {
        let straddle = _mm256_permute2f128_pd::<0x21>(centre, after);
        _mm256_shuffle_pd::<0b0101>(centre, straddle)
    }
}

lanes! {
    /// Eight singles.
    F32x8(__m256): f32, 8;
    _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_stream_ps _mm256_add_ps _mm256_sub_ps
    _mm256_mul_ps;
    magnitude |x| _mm256_andnot_ps(_mm256_set1_ps(-0.0), x);
    larger |a, b| _mm256_castsi256_ps(_mm256_max_epu32(
        _mm256_castps_si256(a),
        _mm256_castps_si256(b),
    ));
    west |centre, before| {
        let centre = _mm256_castps_si256(centre);
        let straddle = _mm256_permute2x128_si256::<0x21>(_mm256_castps_si256(before), centre);
        _mm256_castsi256_ps(_mm256_alignr_epi8::<12>(centre, straddle))
    };
    east |centre, after| {
        let centre = _mm256_castps_si256(centre);
        let straddle = _mm256_permute2x128_si256::<0x21>(centre, _mm256_castps_si256(after));
        _mm256_castsi256_ps(_mm256_alignr_epi8::<4>(straddle, centre))
    }
}

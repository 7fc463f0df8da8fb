//! Vectors of SSE2, which every x86-64 processor has. A maximum loses NaN: a comparison finds
//! it, whose mask is a NaN itself.

use std::arch::x86_64::*;

use super::lanes::lanes;

lanes! {
    /// Two doubles.
    F64x2(__m128d): f64, 2;
    _mm_set1_pd _mm_loadu_pd _mm_storeu_pd _mm_stream_pd _mm_add_pd _mm_sub_pd _mm_mul_pd;
    magnitude |x| _mm_andnot_pd(_mm_set1_pd(-0.0), x);
    larger |a, b| _mm_or_pd(_mm_max_pd(a, b), _mm_cmpunord_pd(a, b));
    west |centre, before| _mm_shuffle_pd::<0b01>(before, centre);
    east |centre, after| _mm_shuffle_pd::<0b01>(centre, after)
}

lanes! {
    /// Four singles. One shuffle takes two points of each operand, so the
    /// point from the neighbour is first paired with the one next to it.
    F32x4(__m128): f32, 4;
    _mm_set1_ps _mm_loadu_ps _mm_storeu_ps _mm_stream_ps _mm_add_ps _mm_sub_ps _mm_mul_ps;
    magnitude |x| _mm_andnot_ps(_mm_set1_ps(-0.0), x);
    larger |a, b| _mm_or_ps(_mm_max_ps(a, b), _mm_cmpunord_ps(a, b));
    west |centre, before| {
        let pair = _mm_shuffle_ps::<0b00_00_11_11>(before, centre);
        _mm_shuffle_ps::<0b10_01_10_00>(pair, centre)
    };
    east |centre, after| {
        let pair = _mm_shuffle_ps::<0b00_00_11_11>(centre, after);
        _mm_shuffle_ps::<0b10_00_10_01>(centre, pair)
    }
}

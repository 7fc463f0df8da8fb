//! Five kernels of many heads at once.

use super::Stage;
use super::heads::weights;
use super::maker::Maker;
use crate::codelet::gemm::Gemm;
use crate::graph::DatumId;

/// Adds these heads, of the input `x`; their Z, one behind the other.
pub(super) fn add(made: &mut Maker, heads: (u32, u32), x: DatumId) -> DatumId {
    let beta = made.of.beta;
    let count = heads.1 - heads.0;
    let projections = made.weights("W_QKV", heads, &[0, 1, 2]);
    let w = made.weights("W", heads, &[3]);
    let gemm = Gemm::square(beta).batch(count);

    // All Q, then all K, then all V.
    let all = Gemm::square(beta).batch(3 * count).common_a();
    let qkv = made.product(Stage::Projections, heads, &all, [x, projections]);
    let scores = gemm.transposed().after(0, count);
    let a = made.product(Stage::Scores, heads, &scores, [qkv, qkv]);
    let b = weights(made, heads, a);
    let context = gemm.after(0, 2 * count);
    let c = made.product(Stage::Context, heads, &context, [b, qkv]);
    made.product(Stage::Output, heads, &gemm, [c, w])
}

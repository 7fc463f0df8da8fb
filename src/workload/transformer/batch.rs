//! Five kernels of many heads at once.

use super::Stage;
use super::heads::{product, weights};
use super::layers::Maker;
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
    let qkv = Gemm::square(beta).batch(3 * count).common_a();
    let qkv = made.kernel(Stage::Projections, heads, product(&qkv, x, projections));
    let scores = gemm.transposed().after(0, count);
    let a = made.kernel(Stage::Scores, heads, product(&scores, qkv, qkv));
    let b = made.kernel(Stage::Weights, heads, weights(beta, count, a));
    let context = gemm.after(0, 2 * count);
    let c = made.kernel(Stage::Context, heads, product(&context, b, qkv));
    made.kernel(Stage::Output, heads, product(&gemm, c, w))
}

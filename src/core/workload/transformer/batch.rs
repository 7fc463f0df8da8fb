//! Adds the five kernels that compute a group of a transformer's heads together.

use super::KernelRole;
use super::builder::LayerBuilder;
use super::heads::weights;
use crate::codelet::gemm::Gemm;
use crate::graph::DatumId;

/// Adds these heads with the input `x`, and returns their Z, one after the other.
pub(super) fn add(builder: &mut LayerBuilder, heads: (u32, u32), x: DatumId) -> DatumId {
    let beta = builder.of.beta;
    let count = heads.1 - heads.0;
    let projections = builder.weights("W_QKV", heads, &[0, 1, 2]);
    let w = builder.weights("W", heads, &[3]);
    let square = Gemm::square(beta).format(builder.of.format);
    let gemm = square.batch(count);

    // All Q, then all K, then all V.
    let all = square.batch(3 * count).common_a();
    let qkv = builder.product(KernelRole::Projections, heads, &all, [x, projections]);
    let scores = gemm.transposed().after(0, count);
    let a = builder.product(KernelRole::Scores, heads, &scores, [qkv, qkv]);
    let b = weights(builder, heads, a);
    let context = gemm.after(0, 2 * count);
    let c = builder.product(KernelRole::Context, heads, &context, [b, qkv]);
    builder.product(KernelRole::Output, heads, &gemm, [c, w])
}

//! Adds the eight kernels that compute one of a transformer's heads.

use std::sync::Arc;

use super::KernelRole;
use super::builder::{LayerBuilder, Work};
use crate::codelet::gemm::Gemm;
use crate::codelet::softmax::Softmax;
use crate::codelet::transpose::Transpose;
use crate::graph::DatumId;

/// Adds a head with the input `x`, and returns its Z.
pub(super) fn add(builder: &mut LayerBuilder, head: (u32, u32), x: DatumId) -> DatumId {
    let beta = builder.of.beta;
    let names = ["W_Q", "W_K", "W_V", "W"];
    let [w_q, w_k, w_v, w] =
        [0, 1, 2, 3].map(|which| builder.weights(names[which as usize], head, &[which]));
    let gemm = Gemm::square(beta).format(builder.of.format);
    let q = builder.product(KernelRole::Q, head, &gemm, [x, w_q]);
    let k = builder.product(KernelRole::K, head, &gemm, [x, w_k]);
    let v = builder.product(KernelRole::V, head, &gemm, [x, w_v]);
    let t = transposed(builder, head, k);
    let a = builder.product(KernelRole::Scores, head, &gemm, [q, t]);
    let b = weights(builder, head, a);
    let c = builder.product(KernelRole::Context, head, &gemm, [b, v]);
    builder.product(KernelRole::Output, head, &gemm, [c, w])
}

/// Adds the softmax of some heads' matrices, with the factor of attention.
pub(super) fn weights(builder: &mut LayerBuilder, heads: (u32, u32), scores: DatumId) -> DatumId {
    let beta = builder.of.beta;
    let matrices = heads.1 - heads.0;
    let softmax = Softmax {
        format: builder.of.format,
        rows: u64::from(beta) * u64::from(matrices),
        width: beta,
        factor: factor(beta) as f32,
    };
    let work = Work {
        codelet: Arc::clone(&builder.codelets.softmax),
        units: softmax.units(),
        inputs: vec![scores],
        matrices,
        values: softmax.sizes().to_vec(),
        cost: softmax.cost(),
    };
    builder.kernel(KernelRole::Weights, heads, work)
}

/// `1 / sqrt(beta)`
pub(super) fn factor(beta: u32) -> f64 {
    1.0 / f64::from(beta).sqrt()
}

fn transposed(builder: &mut LayerBuilder, head: (u32, u32), of: DatumId) -> DatumId {
    let transpose = Transpose {
        format: builder.of.format,
        rows: builder.of.beta,
        columns: builder.of.beta,
        batch: 1,
    };
    let work = Work {
        codelet: Arc::clone(&builder.codelets.transpose),
        units: transpose.units(),
        inputs: vec![of],
        matrices: 1,
        values: transpose.sizes().to_vec(),
        cost: transpose.cost(),
    };
    builder.kernel(KernelRole::Transposed, head, work)
}

//! A head's eight kernels.

use std::sync::Arc;

use super::Stage;
use super::maker::{Maker, Work};
use crate::codelet::gemm::Gemm;
use crate::codelet::softmax::Softmax;
use crate::codelet::transpose::Transpose;
use crate::graph::DatumId;

/// Adds a head, of the input `x`; its Z.
pub(super) fn add(made: &mut Maker, head: (u32, u32), x: DatumId) -> DatumId {
    let beta = made.of.beta;
    let names = ["W_Q", "W_K", "W_V", "W"];
    let [w_q, w_k, w_v, w] =
        [0, 1, 2, 3].map(|which| made.weights(names[which as usize], head, &[which]));
    let gemm = Gemm::square(beta);
    let q = made.product(Stage::Q, head, &gemm, [x, w_q]);
    let k = made.product(Stage::K, head, &gemm, [x, w_k]);
    let v = made.product(Stage::V, head, &gemm, [x, w_v]);
    let t = transposed(made, head, k);
    let a = made.product(Stage::Scores, head, &gemm, [q, t]);
    let b = weights(made, head, a);
    let c = made.product(Stage::Context, head, &gemm, [b, v]);
    made.product(Stage::Output, head, &gemm, [c, w])
}

/// Adds softmax of some heads' matrices, with attention's factor.
pub(super) fn weights(made: &mut Maker, heads: (u32, u32), scores: DatumId) -> DatumId {
    let beta = made.of.beta;
    let matrices = heads.1 - heads.0;
    let softmax = Softmax {
        rows: u64::from(beta) * u64::from(matrices),
        width: beta,
        factor: factor(beta) as f32,
    };
    let work = Work {
        codelet: Arc::clone(&made.codelets.softmax),
        units: softmax.units(),
        inputs: vec![scores],
        matrices,
        values: softmax.sizes().to_vec(),
        cost: softmax.cost(),
    };
    made.kernel(Stage::Weights, heads, work)
}

/// `1 / sqrt(beta)`
pub(super) fn factor(beta: u32) -> f64 {
    1.0 / f64::from(beta).sqrt()
}

fn transposed(made: &mut Maker, head: (u32, u32), of: DatumId) -> DatumId {
    let transpose = Transpose {
        rows: made.of.beta,
        columns: made.of.beta,
        batch: 1,
    };
    let work = Work {
        codelet: Arc::clone(&made.codelets.transpose),
        units: transpose.units(),
        inputs: vec![of],
        matrices: 1,
        values: transpose.sizes().to_vec(),
        cost: transpose.cost(),
    };
    made.kernel(Stage::Transposed, head, work)
}

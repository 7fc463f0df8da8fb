//! A head's eight kernels.

use std::sync::Arc;

use super::Stage;
use super::layers::{Maker, Work};
use crate::codelet::gemm::Gemm;
use crate::codelet::softmax::{self, Softmax};
use crate::codelet::transpose::{self, Transpose};
use crate::graph::DatumId;

/// Adds a head, of the input `x`; its Z.
pub(super) fn add(made: &mut Maker, head: (u32, u32), x: DatumId) -> DatumId {
    let beta = made.of.beta;
    let names = ["W_Q", "W_K", "W_V", "W"];
    let [w_q, w_k, w_v, w] =
        [0, 1, 2, 3].map(|which| made.weights(names[which as usize], head, &[which]));
    let gemm = Gemm::square(beta);
    let q = made.kernel(Stage::Q, head, product(&gemm, x, w_q));
    let k = made.kernel(Stage::K, head, product(&gemm, x, w_k));
    let v = made.kernel(Stage::V, head, product(&gemm, x, w_v));
    let t = made.kernel(Stage::Transposed, head, transposed(beta, k));
    let a = made.kernel(Stage::Scores, head, product(&gemm, q, t));
    let b = made.kernel(Stage::Weights, head, weights(beta, 1, a));
    let c = made.kernel(Stage::Context, head, product(&gemm, b, v));
    made.kernel(Stage::Output, head, product(&gemm, c, w))
}

/// A product of these two.
pub(super) fn product(gemm: &Gemm, a: DatumId, b: DatumId) -> Work {
    Work {
        codelet: Arc::new(gemm.codelet()),
        units: gemm.units(),
        inputs: vec![a, b],
        matrices: gemm.batch,
        values: gemm.sizes().to_vec(),
        cost: gemm.cost(),
    }
}

/// Softmax of so many matrices, with attention's factor.
pub(super) fn weights(beta: u32, matrices: u32, scores: DatumId) -> Work {
    let softmax = Softmax {
        rows: u64::from(beta) * u64::from(matrices),
        width: beta,
        factor: factor(beta) as f32,
    };
    Work {
        codelet: Arc::new(softmax::codelet()),
        units: softmax.units(),
        inputs: vec![scores],
        matrices,
        values: softmax.sizes().to_vec(),
        cost: softmax.cost(),
    }
}

/// `1 / sqrt(beta)`
pub(super) fn factor(beta: u32) -> f64 {
    1.0 / f64::from(beta).sqrt()
}

fn transposed(beta: u32, of: DatumId) -> Work {
    let transpose = Transpose {
        rows: beta,
        columns: beta,
        batch: 1,
    };
    Work {
        codelet: Arc::new(transpose::codelet()),
        units: transpose.units(),
        inputs: vec![of],
        matrices: 1,
        values: transpose.sizes().to_vec(),
        cost: transpose.cost(),
    }
}

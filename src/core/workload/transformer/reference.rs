//! The sequential reference of a transformer, in double precision, and the variances of what
//! rounding changes. Every sum is in the order of its terms. Heads are computed in parallel,
//! which changes no number.

use std::sync::atomic::{AtomicBool, Ordering};

use super::heads::factor;
use super::numbers::Matrix;
use super::uncertain::{Rounds, Uncertain};
use super::{KernelPart, KernelRole, Transformer};
use crate::parallel;

/// The results of a head.
pub(super) struct Head {
    q: Uncertain,
    k: Uncertain,
    v: Uncertain,
    transposed: Uncertain,
    scores: Uncertain,
    weights: Uncertain,
    context: Uncertain,
    z: Uncertain,
}

impl Head {
    /// The result of a kernel.
    fn at(&self, role: KernelRole) -> &Uncertain {
        match role {
            KernelRole::Q => &self.q,
            KernelRole::K => &self.k,
            KernelRole::V => &self.v,
            KernelRole::Transposed => &self.transposed,
            KernelRole::Scores => &self.scores,
            KernelRole::Weights => &self.weights,
            KernelRole::Context => &self.context,
            KernelRole::Projections | KernelRole::Output | KernelRole::Sum => &self.z,
        }
    }
}

/// The results of a layer.
pub(super) struct Layer {
    heads: Vec<Head>,
    /// The next layer's input.
    sum: Uncertain,
}

impl Layer {
    /// The result of a kernel of the layer, matrix by matrix.
    pub(super) fn right(&self, part: &KernelPart) -> Vec<Uncertain> {
        let Some((first, end)) = part.heads else {
            return vec![self.sum.clone()];
        };
        let heads = &self.heads[first as usize..end as usize];
        let roles = match part.role {
            KernelRole::Projections => vec![KernelRole::Q, KernelRole::K, KernelRole::V],
            role => vec![role],
        };
        let all = roles
            .iter()
            .flat_map(|role| heads.iter().map(|head| head.at(*role).clone()));
        all.collect()
    }
}

/// Computes layer by layer, and passes each to `see`. When `stop` is set, it returns
/// early and the results are wrong.
pub(super) fn compute(of: &Transformer, stop: &AtomicBool, mut see: impl FnMut(u32, &Layer)) {
    let rounds = Rounds {
        format: of.format,
        beta: of.beta as usize,
        stop,
    };
    let mut x = matrix(of, Matrix::Input);
    for layer in 0..of.layers {
        let heads = compute_heads(of, layer, &x, rounds);
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let sum = rounds.sum(&x, heads.iter().map(|head| &head.z));
        let made = Layer { heads, sum };
        see(layer, &made);
        x = made.sum;
    }
}

/// Computes all heads of a layer, with a thread for each core.
fn compute_heads(of: &Transformer, layer: u32, x: &Uncertain, rounds: Rounds) -> Vec<Head> {
    parallel::map((0..of.heads).collect(), |head| {
        compute_head(of, (layer, head), x, rounds)
    })
}

fn compute_head(
    of: &Transformer,
    (layer, head): (u32, u32),
    x: &Uncertain,
    rounds: Rounds,
) -> Head {
    let weight = |which| matrix(of, Matrix::Weight { layer, head, which });
    let q = rounds.product(x, &weight(0));
    let k = rounds.product(x, &weight(1));
    let v = rounds.product(x, &weight(2));
    let transposed = k.transposed(rounds.beta);
    let scores = rounds.product(&q, &transposed);
    let weights = rounds.softmax(&scores, factor(of.beta));
    let context = rounds.product(&weights, &v);
    let z = rounds.product(&context, &weight(3));
    Head {
        q,
        k,
        v,
        transposed,
        scores,
        weights,
        context,
        z,
    }
}

fn matrix(of: &Transformer, matrix: Matrix) -> Uncertain {
    Uncertain::exact(matrix.numbers(of.seed, of.beta, of.format.element()))
}

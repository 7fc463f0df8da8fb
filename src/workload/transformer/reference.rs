//! The sequential reference of a transformer, in double precision. Every sum is in the
//! order of its terms. Heads are computed in parallel, which changes no number.

use std::sync::atomic::{AtomicBool, Ordering};

use super::heads::factor;
use super::numbers::Matrix;
use super::{KernelRole, Part, Transformer};
use crate::codelet::add_norm::LEAST;
use crate::parallel;

/// A square matrix by rows.
pub(super) type Square = Vec<f64>;

/// The results of a head.
pub(super) struct Head {
    q: Square,
    k: Square,
    v: Square,
    transposed: Square,
    scores: Square,
    weights: Square,
    context: Square,
    z: Square,
}

impl Head {
    /// The result of a kernel.
    fn at(&self, role: KernelRole) -> &Square {
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
    sum: Square,
}

impl Layer {
    /// The result of a kernel of the layer, matrix by matrix.
    pub(super) fn right(&self, part: &Part) -> Vec<Square> {
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
    let mut x = matrix(of, Matrix::Input);
    for layer in 0..of.layers {
        let heads = compute_heads(of, layer, &x, stop);
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let mut sum = x;
        for head in &heads {
            for (sum, z) in sum.iter_mut().zip(&head.z) {
                *sum += z;
            }
        }
        sum.chunks_exact_mut(of.beta as usize).for_each(normalise);
        let made = Layer { heads, sum };
        see(layer, &made);
        x = made.sum;
    }
}

/// Computes all heads of a layer, with a thread for each core.
fn compute_heads(of: &Transformer, layer: u32, x: &Square, stop: &AtomicBool) -> Vec<Head> {
    parallel::map((0..of.heads).collect(), |head| {
        compute_head(of, (layer, head), x, stop)
    })
}

fn compute_head(
    of: &Transformer,
    (layer, head): (u32, u32),
    x: &Square,
    stop: &AtomicBool,
) -> Head {
    let beta = of.beta as usize;
    let weight = |which| matrix(of, Matrix::Weight { layer, head, which });
    let product = |a: &Square, b: &Square| product(beta, a, b, stop);
    let q = product(x, &weight(0));
    let k = product(x, &weight(1));
    let v = product(x, &weight(2));
    let mut transposed = vec![0.0; beta * beta];
    for (at, number) in k.iter().enumerate() {
        transposed[at % beta * beta + at / beta] = *number;
    }
    let scores = product(&q, &transposed);
    let mut weights = scores.clone();
    weights
        .chunks_exact_mut(beta)
        .for_each(|row| softmax(row, factor(of.beta)));
    let context = product(&weights, &v);
    let z = product(&context, &weight(3));
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

fn matrix(of: &Transformer, matrix: Matrix) -> Square {
    let mut numbers = vec![0.0; of.numbers() as usize];
    matrix.write(of.seed, of.beta, &mut numbers);
    numbers.into_iter().map(f64::from).collect()
}

/// The product of `a` and `b`. It adds four rows of `b` at a time, so that a row of sums
/// is loaded a quarter as often. Once `stop` is set, the other rows stay zero.
fn product(beta: usize, a: &Square, b: &Square, stop: &AtomicBool) -> Square {
    let mut c = vec![0.0; beta * beta];
    let rows = c
        .chunks_exact_mut(beta)
        .zip(a.chunks_exact(beta))
        .take_while(|_| !stop.load(Ordering::Relaxed));
    for (row, a) in rows {
        let (fours, rest) = a.as_chunks::<4>();
        let (above, below) = b.split_at(fours.len() * 4 * beta);
        for (a, b) in fours.iter().zip(above.chunks_exact(4 * beta)) {
            let (b0, b) = b.split_at(beta);
            let (b1, b) = b.split_at(beta);
            let (b2, b3) = b.split_at(beta);
            let others = b0.iter().zip(b1).zip(b2).zip(b3);
            for (c, (((b0, b1), b2), b3)) in row.iter_mut().zip(others) {
                // From left to right, so that the sum is the same as term by term.
                *c = *c + a[0] * b0 + a[1] * b1 + a[2] * b2 + a[3] * b3;
            }
        }
        for (a, b) in rest.iter().zip(below.chunks_exact(beta)) {
            for (c, b) in row.iter_mut().zip(b) {
                *c += a * b;
            }
        }
    }
    c
}

fn softmax(row: &mut [f64], factor: f64) {
    let greatest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for number in &mut *row {
        *number = (factor * (*number - greatest)).exp();
    }
    let sum: f64 = row.iter().sum();
    for number in row {
        *number /= sum;
    }
}

fn normalise(row: &mut [f64]) {
    let width = row.len() as f64;
    let mean = row.iter().sum::<f64>() / width;
    let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width;
    for number in row {
        *number = (*number - mean) / (variance + f64::from(LEAST)).sqrt();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_equals_its_sums_term_by_term() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        for beta in [1, 2, 3, 4, 5, 7, 8, 13] {
            let mut square = || -> Square { (0..beta * beta).map(|_| rng.f64() - 0.5).collect() };
            let (a, b) = (square(), square());
            for (at, got) in product(beta, &a, &b, &AtomicBool::new(false))
                .iter()
                .enumerate()
            {
                let (row, column) = (at / beta, at % beta);
                let terms = (0..beta).map(|k| a[row * beta + k] * b[k * beta + column]);
                let sum = terms.fold(0.0, |sum: f64, term| sum + term);
                assert_eq!(*got, sum, "{beta}: {row}, {column}");
            }
        }
    }
}

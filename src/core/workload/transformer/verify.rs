//! Verifies a transformer's results by comparison with the sequential reference, in double
//! precision, with the variances of what rounding changes.

use std::sync::atomic::{AtomicBool, Ordering};

use super::layers::factor;
use super::numbers::Matrix;
use super::uncertain::{Rounds, Uncertain};
use super::{KernelPart, KernelRole, Transformer};
use crate::codelet::NumberFormat;
use crate::parallel;

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verification {
    /// The largest difference of any number from the right one d, as `d / (r + 8 s / a)`; r is
    /// the root mean square of its matrix, s the standard deviation of what rounding to the
    /// format changes, and a is [`Self::allowed`]. Infinite if a result is not finite.
    pub error: f64,
    /// The largest error that is allowed: 1e-5 times the square root of beta, the length
    /// of the sums of singles. With it, d is at most `a r + 8 s`.
    pub allowed: f64,
}

impl Verification {
    /// Whether the result is right.
    pub fn right(&self) -> bool {
        self.error <= self.allowed
    }
}

/// The right results of kernels, in double precision.
pub struct Reference {
    /// Matrix by matrix.
    right: Vec<(KernelPart, Vec<Uncertain>)>,
    allowed: f64,
}

impl Reference {
    /// Compares results of kernels. The reference must contain all of them.
    pub fn compare(&self, results: &[(KernelPart, Vec<f64>)]) -> Verification {
        let errors = results.iter().map(|(part, got)| {
            let known = self.right.iter().find(|(of, _)| of == part);
            known.map_or(f64::INFINITY, |(_, right)| worst(got, right, self.allowed))
        });
        Verification {
            error: errors.fold(0.0, f64::max),
            allowed: self.allowed,
        }
    }
}

/// The largest difference of a kernel's matrices, over their root mean squares.
fn worst(got: &[f64], right: &[Uncertain], allowed: f64) -> f64 {
    if got.len() != right.iter().map(|right| right.numbers.len()).sum::<usize>() {
        return f64::INFINITY;
    }
    let mut rest = got;
    let errors = right.iter().map(|right| {
        let (got, others) = rest.split_at(right.numbers.len());
        rest = others;
        difference(got, right, allowed)
    });
    errors.fold(0.0, f64::max)
}

impl Transformer {
    /// The right results of these kernels, computed sequentially; `None` if `stop` was
    /// set meanwhile.
    pub fn reference(&self, parts: &[KernelPart], stop: &AtomicBool) -> Option<Reference> {
        let mut right = Vec::new();
        compute(self, stop, |layer, made| {
            let parts = parts.iter().filter(|part| part.layer == layer);
            right.extend(parts.map(|part| (*part, made.right(part))));
        });
        (!stop.load(Ordering::Relaxed)).then(|| Reference {
            right,
            allowed: self.tolerance(),
        })
    }

    /// Compares results of kernels with the sequential reference; `None` if `stop` was
    /// set meanwhile.
    pub fn verify(
        &self,
        results: &[(KernelPart, Vec<f64>)],
        stop: &AtomicBool,
    ) -> Option<Verification> {
        let parts: Vec<KernelPart> = results.iter().map(|(part, _)| *part).collect();
        Some(self.reference(&parts, stop)?.compare(results))
    }

    /// Bytes of host memory that a comparison needs beside the graph's data: the results,
    /// those of the reference in double precision, with variances where numbers are rounded,
    /// and a layer of that in progress.
    pub fn verification_memory(&self) -> u64 {
        let layer = 8 * u64::from(self.heads) + 1;
        let results = u64::from(self.layers).saturating_mul(layer);
        // A head in progress also needs its weights.
        let of_reference = results.saturating_add(layer + 6);
        let of_reference = match self.format {
            NumberFormat::F32 => of_reference,
            NumberFormat::F16 | NumberFormat::Bf16 | NumberFormat::Tf32 => {
                of_reference.saturating_mul(2)
            }
        };
        let matrices = results.saturating_add(of_reference);
        matrices
            .saturating_mul(self.numbers())
            .saturating_mul(size_of::<f64>() as u64)
    }

    /// The largest error that is allowed, over the root mean square.
    pub fn tolerance(&self) -> f64 {
        1e-5 * f64::from(self.beta).sqrt()
    }
}

/// Standard deviations that are allowed: those of millions of numbers are within 6 nearly
/// always, and correlations of errors are not counted.
const DEVIATIONS: f64 = 8.0;

/// The largest difference, as [`Verification::error`] counts it.
fn difference(got: &[f64], right: &Uncertain, allowed: f64) -> f64 {
    let numbers = &right.numbers;
    if got.len() != numbers.len() || !got.iter().all(|number| number.is_finite()) {
        return f64::INFINITY;
    }
    let squares: f64 = numbers.iter().map(|number| number * number).sum();
    let mean = (squares / numbers.len() as f64).sqrt();
    let mean = if mean > 0.0 { mean } else { 1.0 };
    let error = |at: usize| {
        let variance = right.variances.as_ref().map_or(0.0, |of| of[at]);
        (got[at] - numbers[at]).abs() / (mean + DEVIATIONS * variance.sqrt() / allowed)
    };
    (0..got.len()).map(error).fold(0.0, f64::max)
}

// The sequential reference of a transformer, in double precision, and the variances of what
// rounding changes. Every sum is in the order of its terms. Heads are computed in parallel,
// which changes no number.

/// The results of a head.
struct Head {
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
struct Layer {
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
fn compute(of: &Transformer, stop: &AtomicBool, mut see: impl FnMut(u32, &Layer)) {
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

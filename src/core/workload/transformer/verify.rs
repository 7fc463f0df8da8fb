//! Verifies a transformer's results by comparison with the sequential reference.

use std::sync::atomic::{AtomicBool, Ordering};

use super::reference;
use super::uncertain::Uncertain;
use super::{KernelPart, Transformer};
use crate::codelet::NumberFormat;

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
        reference::compute(self, stop, |layer, made| {
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

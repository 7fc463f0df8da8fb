//! Verifies a transformer's results by comparison with the sequential reference.

use std::sync::atomic::{AtomicBool, Ordering};

use super::reference::{self, Square};
use super::{Part, Transformer};

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verification {
    /// The largest difference of any matrix, divided by the root mean square of that
    /// matrix; infinite if a result is not finite.
    pub error: f64,
    /// The largest error that is allowed: 1e-5 times the square root of beta, the length
    /// of the sums.
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
    right: Vec<(Part, Vec<Square>)>,
    allowed: f64,
}

impl Reference {
    /// Compares results of kernels. The reference must contain all of them.
    pub fn compare(&self, results: &[(Part, Vec<f32>)]) -> Verification {
        let errors = results.iter().map(|(part, got)| {
            let known = self.right.iter().find(|(of, _)| of == part);
            known.map_or(f64::INFINITY, |(_, right)| worst(got, right))
        });
        Verification {
            error: errors.fold(0.0, f64::max),
            allowed: self.allowed,
        }
    }
}

/// The largest difference of a kernel's matrices, over their root mean squares.
fn worst(got: &[f32], right: &[Square]) -> f64 {
    if got.len() != right.iter().map(Vec::len).sum::<usize>() {
        return f64::INFINITY;
    }
    let mut rest = got;
    let errors = right.iter().map(|right| {
        let (got, others) = rest.split_at(right.len());
        rest = others;
        difference(got, right)
    });
    errors.fold(0.0, f64::max)
}

impl Transformer {
    /// The right results of these kernels, computed sequentially; `None` if `stop` was
    /// set meanwhile.
    pub fn reference(&self, parts: &[Part], stop: &AtomicBool) -> Option<Reference> {
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
    pub fn verify(&self, results: &[(Part, Vec<f32>)], stop: &AtomicBool) -> Option<Verification> {
        let parts: Vec<Part> = results.iter().map(|(part, _)| *part).collect();
        Some(self.reference(&parts, stop)?.compare(results))
    }

    /// Bytes of host memory that a comparison needs beside the graph's data: the results,
    /// those of the reference in double precision, and a layer of that in progress.
    pub fn verification_memory(&self) -> u64 {
        let layer = 8 * u64::from(self.heads) + 1;
        let results = u64::from(self.layers).saturating_mul(layer);
        // Doubles are twice as long, and a head in progress also needs its weights.
        let doubles = 2u64.saturating_mul(results.saturating_add(layer + 6));
        results.saturating_add(doubles).saturating_mul(self.bytes())
    }

    /// The largest error that is allowed, over the root mean square.
    pub fn tolerance(&self) -> f64 {
        1e-5 * f64::from(self.beta).sqrt()
    }
}

/// The largest difference, over the root mean square of the right numbers.
fn difference(got: &[f32], right: &[f64]) -> f64 {
    if got.len() != right.len() || !got.iter().all(|number| number.is_finite()) {
        return f64::INFINITY;
    }
    let squares: f64 = right.iter().map(|number| number * number).sum();
    let mean = (squares / right.len() as f64).sqrt();
    let differences = got
        .iter()
        .zip(right)
        .map(|(g, r)| (f64::from(*g) - r).abs());
    let worst = differences.fold(0.0, f64::max);
    match mean > 0.0 {
        true => worst / mean,
        false => worst,
    }
}

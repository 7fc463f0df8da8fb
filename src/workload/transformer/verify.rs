//! A result compared with the reference.

use super::reference::{self, Square};
use super::{Part, Transformer};

/// What a comparison showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verification {
    /// The largest difference of any matrix, over the root mean square of
    /// that matrix; infinite where a result is no number.
    pub error: f64,
    /// Most that it may be: 1e-5 times the square root of the length of the
    /// sums, beta.
    pub allowed: f64,
}

impl Verification {
    /// Whether the result is right.
    pub fn right(&self) -> bool {
        self.error <= self.allowed
    }
}

/// What kernels are to make, in double precision.
pub struct Reference {
    /// Matrix by matrix.
    right: Vec<(Part, Vec<Square>)>,
    allowed: f64,
}

impl Reference {
    /// Compares what kernels made; every kernel must be of the reference.
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

/// The largest difference of a kernel's matrices.
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
    /// What these kernels are to make, computed one number after the other.
    pub fn reference(&self, parts: &[Part]) -> Reference {
        let mut right = Vec::new();
        reference::compute(self, |layer, made| {
            let parts = parts.iter().filter(|part| part.layer == layer);
            right.extend(parts.map(|part| (*part, made.right(part))));
        });
        Reference {
            right,
            allowed: self.tolerance(),
        }
    }

    /// Compares what kernels made with the sequential reference in double
    /// precision.
    pub fn verify(&self, results: &[(Part, Vec<f32>)]) -> Verification {
        let parts: Vec<Part> = results.iter().map(|(part, _)| *part).collect();
        self.reference(&parts).compare(results)
    }

    /// Most that a result may be wrong, of its root mean square.
    pub fn tolerance(&self) -> f64 {
        1e-5 * f64::from(self.beta).sqrt()
    }
}

/// The largest difference, over the root mean square of what is right.
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

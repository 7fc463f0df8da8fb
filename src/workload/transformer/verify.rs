//! A result compared with the reference.

use super::{Part, Transformer, reference};

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

impl Transformer {
    /// Compares what kernels made with the sequential reference in double
    /// precision.
    pub fn verify(&self, results: &[(Part, Vec<f32>)]) -> Verification {
        let mut error = 0.0_f64;
        reference::compute(self, |layer, made| {
            for (part, got) in results.iter().filter(|(part, _)| part.layer == layer) {
                let right = made.right(part);
                if got.len() as u64 != right.len() as u64 * self.numbers() {
                    error = f64::INFINITY;
                }
                for (got, right) in got.chunks(self.numbers() as usize).zip(right) {
                    error = error.max(difference(got, right));
                }
            }
        });
        Verification {
            error,
            allowed: self.tolerance(),
        }
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

//! A fitted support vector machine, in a form of our own.

use serde::{Deserialize, Serialize};

use super::basis::Range;
use super::scratch;

/// How alike two rows are. Both get features divided by the root of their
/// number d, so that one hyper-parameter means the same for 4 and 12 features.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Kernel {
    /// exp(-gamma |x - x'|²)
    Gaussian { gamma: f64 },
    /// (x · x' + 1)^degree
    Polynomial { degree: u32 },
}

/// offset + the sum of coefficient k(vector, x) over the support vectors.
///
/// Outside of the range of the training features are followed for half of its
/// width, and count as that far further out. A Gaussian returns to the offset
/// there, a polynomial goes on: neither is to be trusted far out.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct KernelMachine {
    pub(super) kernel: Kernel,
    pub(super) ranges: Vec<Range>,
    pub(super) offset: f64,
    pub(super) coefficients: Vec<f64>,
    /// The support vectors one after the other, divided by the root of d.
    pub(super) vectors: Vec<f64>,
}

impl KernelMachine {
    pub(super) fn inputs(&self) -> usize {
        self.ranges.len()
    }

    pub(super) fn predict(&self, x: &[f64]) -> f64 {
        let root = (self.inputs() as f64).sqrt();
        scratch(self.inputs(), |scaled| {
            for ((scaled, range), &value) in scaled.iter_mut().zip(&self.ranges).zip(x) {
                *scaled = range.limit(value) / root;
            }
            self.offset + self.sum(scaled)
        })
    }

    fn sum(&self, x: &[f64]) -> f64 {
        let vectors = self.vectors.chunks_exact(x.len()).zip(&self.coefficients);
        match self.kernel {
            Kernel::Gaussian { gamma } => vectors
                .map(|(vector, weight)| weight * (-gamma * distance(vector, x)).exp())
                .sum(),
            Kernel::Polynomial { degree } => {
                let degree = degree as i32;
                vectors
                    .map(|(vector, weight)| weight * (dot(vector, x) + 1.0).powi(degree))
                    .sum()
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let expected = self.coefficients.len() * self.inputs();
        if self.vectors.len() != expected {
            let found = self.vectors.len();
            return Err(format!(
                "the support vectors have {found} numbers instead of {expected}"
            ));
        }
        if self.ranges.iter().any(|range| !range.is_valid()) {
            return Err("a range of the support vector machine is damaged".into());
        }
        let numbers = self.vectors.iter().chain(&self.coefficients);
        if numbers
            .chain([&self.offset])
            .any(|number| !number.is_finite())
        {
            return Err("a number of the support vector machine is not finite".into());
        }
        match self.kernel {
            Kernel::Gaussian { gamma } if gamma.is_finite() && gamma > 0.0 => Ok(()),
            Kernel::Polynomial { degree: 1..=8 } => Ok(()),
            kernel => Err(format!("{kernel:?} is no kernel of ours")),
        }
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

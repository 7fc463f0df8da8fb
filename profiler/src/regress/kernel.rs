//! A fitted support vector machine, in the form of model files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Range, scratch};

/// Support vectors that are computed together.
const BLOCK: usize = 64;

/// How alike two rows are. Both get features divided by the root of their
/// number d, so that one hyper-parameter means the same for 4 and 12 features.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, JsonSchema, Serialize)]
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
#[derive(Clone, Debug, Deserialize, PartialEq, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct KernelMachine {
    pub(super) kernel: Kernel,
    pub(super) ranges: Vec<Range>,
    pub(super) offset: f64,
    pub(super) coefficients: Vec<f64>,
    /// The support vectors divided by the root of d: the first feature of all
    /// of them, then the second.
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

    /// The weighted sum of the kernel over the support vectors, a block of
    /// them at a time: within a block the compiler computes several at once.
    fn sum(&self, x: &[f64]) -> f64 {
        let count = self.coefficients.len();
        let mut sum = 0.0;
        for start in (0..count).step_by(BLOCK) {
            let block = start..(start + BLOCK).min(count);
            let columns = self.vectors.chunks_exact(count);
            let columns = columns.map(|column| &column[block.clone()]).zip(x);
            let alike = match self.kernel {
                Kernel::Gaussian { gamma } => gaussian(columns, gamma),
                Kernel::Polynomial { degree } => polynomial(columns, degree),
            };
            let terms = alike.iter().zip(&self.coefficients[block]);
            sum += terms.map(|(alike, weight)| alike * weight).sum::<f64>();
        }
        sum
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

/// exp(-gamma |x - x'|²) of a block of vectors, given feature by feature.
fn gaussian<'a>(columns: impl Iterator<Item = (&'a [f64], &'a f64)>, gamma: f64) -> [f64; BLOCK] {
    let mut squares = [0.0; BLOCK];
    let mut length = 0;
    for (column, x) in columns {
        length = column.len();
        for (square, value) in squares.iter_mut().zip(column) {
            *square += (value - x) * (value - x);
        }
    }
    for square in &mut squares[..length] {
        *square = (-gamma * *square).exp();
    }
    squares
}

/// (x · x' + 1)^degree of a block of vectors, given feature by feature.
fn polynomial<'a>(
    columns: impl Iterator<Item = (&'a [f64], &'a f64)>,
    degree: u32,
) -> [f64; BLOCK] {
    let mut products = [1.0; BLOCK];
    for (column, x) in columns {
        for (product, value) in products.iter_mut().zip(column) {
            *product += value * x;
        }
    }
    let mut powers = [1.0; BLOCK];
    for _ in 0..degree {
        for (power, product) in powers.iter_mut().zip(&products) {
            *power *= product;
        }
    }
    powers
}

//! Support vector machines: fitted with linfa-svm, kept in a form of our own.

use linfa::Dataset;
use linfa::traits::Fit;
use linfa_svm::{ExitReason, Svm};
use ndarray::{Array1, Array2, Axis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::linear::ranges;
use super::{FitError, Range, Regression, scratch};

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
    kernel: Kernel,
    ranges: Vec<Range>,
    offset: f64,
    coefficients: Vec<f64>,
    /// The support vectors divided by the root of d: the first feature of all
    /// of them, then the second.
    vectors: Vec<f64>,
}

impl KernelMachine {
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
}

impl Regression for KernelMachine {
    fn inputs(&self) -> usize {
        self.ranges.len()
    }

    fn predict(&self, x: &[f64]) -> f64 {
        let root = (self.inputs() as f64).sqrt();
        scratch(self.inputs(), |scaled| {
            for ((scaled, range), &value) in scaled.iter_mut().zip(&self.ranges).zip(x) {
                *scaled = range.limit(value) / root;
            }
            self.offset + self.sum(scaled)
        })
    }

    fn check(&self) -> Result<(), String> {
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

/// When the solver stops: how far the conditions of the optimum may be
/// violated, for a target of deviation 1. A tenth of it takes 3 to 8 times the
/// steps, and changes the mean error in the third digit.
const TOLERANCE: f64 = 1e-2;

/// linfa's own limit below which a row is no support vector.
const NO_SUPPORT: f64 = 100.0 * f64::EPSILON;

/// The private part of linfa's model that we need.
#[derive(Deserialize)]
struct Ending {
    exit_reason: ExitReason,
}

/// Fits to the rows of at least half of the largest weight: the machine knows
/// no weights. Its loss grows only linearly with the error, so a row that is
/// somewhat off pulls little.
pub(super) fn fit(
    kernel: Kernel,
    c: f64,
    epsilon: f64,
    x: &Array2<f64>,
    y: &[f64],
    weights: &[f64],
) -> Result<KernelMachine, FitError> {
    let most = weights.iter().copied().fold(0.0, f64::max);
    let rows: Vec<usize> = (0..y.len())
        .filter(|&row| weights[row] >= 0.5 * most)
        .collect();
    let ranges = ranges(&x.select(Axis(0), &rows));
    let scaled = x.select(Axis(0), &rows) / (x.ncols() as f64).sqrt();
    let target: Array1<f64> = rows.iter().map(|&row| y[row]).collect();
    let mean = target.sum() / rows.len() as f64;
    let deviation = target.std(0.0);
    if deviation <= 1e-12 * mean.abs() {
        return Err(FitError::ConstantTarget);
    }

    let machine = train(
        kernel,
        c,
        epsilon / deviation,
        scaled.clone(),
        (target - mean) / deviation,
    )?;
    let support: Vec<usize> = (0..rows.len())
        .filter(|&row| machine.alpha[row].abs() > NO_SUPPORT)
        .collect();
    Ok(KernelMachine {
        kernel,
        ranges,
        offset: mean - deviation * machine.rho,
        coefficients: support
            .iter()
            .map(|&row| deviation * machine.alpha[row])
            .collect(),
        vectors: scaled
            .select(Axis(0), &support)
            .reversed_axes()
            .iter()
            .copied()
            .collect(),
    })
}

/// linfa's model of a target with mean 0 and deviation 1.
fn train(
    kernel: Kernel,
    c: f64,
    epsilon: f64,
    x: Array2<f64>,
    y: Array1<f64>,
) -> Result<Svm<f64, f64>, FitError> {
    let params = Svm::<f64, f64>::params()
        .c_svr(c, Some(epsilon))
        .eps(TOLERANCE);
    let (family, params) = match kernel {
        Kernel::Gaussian { gamma } => ("gaussian", params.gaussian_kernel(1.0 / gamma)),
        Kernel::Polynomial { degree } => (
            "polynomial",
            params.polynomial_kernel(1.0, f64::from(degree)),
        ),
    };
    let failed = |reason: String| FitError::Solver { family, reason };
    let machine = params
        .fit(&Dataset::new(x, y))
        .map_err(|error| failed(error.to_string()))?;
    let ending = serde_json::to_value(&machine)
        .and_then(serde_json::from_value::<Ending>)
        .map_err(|error| failed(error.to_string()))?;
    match ending.exit_reason {
        ExitReason::ReachedThreshold => Ok(machine),
        ExitReason::ReachedIterations => Err(FitError::NotConverged { family }),
    }
}

#[cfg(test)]
mod tests {
    use linfa::traits::Predict;

    use super::super::fixtures::profile;
    use super::*;

    const KERNELS: [Kernel; 3] = [
        Kernel::Gaussian { gamma: 0.7 },
        Kernel::Polynomial { degree: 2 },
        Kernel::Polynomial { degree: 3 },
    ];

    #[test]
    fn predicts_as_linfa_does() {
        let (x, y) = profile(130, 7);
        let root = (x.ncols() as f64).sqrt();
        let target = Array1::from(y.clone());
        let (mean, deviation) = (target.sum() / 130.0, target.std(0.0));
        for kernel in KERNELS {
            let ours = fit(kernel, 1.0, 0.03, &x, &y, &[1.0; 130]).unwrap();
            let standard = (&target - mean) / deviation;
            let theirs = train(kernel, 1.0, 0.03 / deviation, &x / root, standard).unwrap();
            let points = profile(50, 8).0;
            let expected: Array1<f64> = theirs.predict(&(&points / root));
            for (row, expected) in points.rows().into_iter().zip(expected) {
                let found = ours.predict(&row.to_vec());
                let expected = mean + deviation * expected;
                assert!(
                    (found - expected).abs() < 1e-9,
                    "{kernel:?}: {found} {expected}"
                );
            }
            // Where the error is within epsilon no vector is needed.
            assert!(ours.coefficients.len() < 130);
        }
    }

    #[test]
    fn errors_that_cost_nothing_need_no_vectors() {
        let (x, y) = profile(40, 10);
        let flat = fit(KERNELS[0], 1.0, 100.0, &x, &y, &[1.0; 40]).unwrap();
        assert!(flat.coefficients.is_empty());
        assert_eq!(flat.check(), Ok(()));
        let mean = y.iter().sum::<f64>() / 40.0;
        assert!((flat.predict(&[0.3, 0.1]) - mean).abs() < 100.0);
    }

    #[test]
    fn rows_of_little_weight_are_left_out() {
        let (x, mut y) = profile(60, 9);
        let fewer = fit(
            KERNELS[0],
            1.0,
            0.03,
            &x.select(Axis(0), &(0..50).collect::<Vec<_>>()),
            &y[..50],
            &[1.0; 50],
        );
        let mut weights = [1.0; 60];
        weights[50..].fill(0.2);
        y[50..].fill(40.0);
        let all = fit(KERNELS[0], 1.0, 0.03, &x, &y, &weights);
        assert_eq!(all.unwrap(), fewer.unwrap());
    }
}

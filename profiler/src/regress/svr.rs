//! Fits support vector machines with linfa-svm.

use linfa::Dataset;
use linfa::traits::Fit;
use linfa_svm::{ExitReason, Svm};
use ndarray::{Array1, Array2, Axis};
use serde::Deserialize;

use super::FitError;
use super::kernel::{Kernel, KernelMachine};
use super::linear::ranges;

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
pub(super) fn train(
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

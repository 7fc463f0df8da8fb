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

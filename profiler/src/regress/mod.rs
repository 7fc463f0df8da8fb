//! Regressions: from features to a target, both plain numbers.
//!
//! A [`Spec`] says what to fit; [`fit`] fits it to rows and returns a
//! [`Regressor`], which predicts, and is kept in files in a form of our own:
//! nothing in a file depends on how linfa or smartcore arrange their models.
//!
//! Features come standardised (mean 0, deviation 1), or as they are for a
//! [`Sum`]; the target is a logarithm. [`Fitted`](crate::Fitted) does both and is what most callers
//! want.
//!
//! A few runs of a profile are slowed by something else on the machine.
//! [`screen`] finds such rows by two witnesses (a robust regression and the
//! row's neighbours) and gives each row a weight; every family is fitted with
//! these weights, so one slow run in twenty does no harm.

mod basis;
mod error;
#[cfg(test)]
pub(crate) mod fixtures;
mod forest;
mod grow;
mod kernel;
mod linear;
mod range;
mod ridge;
mod robust;
mod scratch;
mod screen;
mod spec;
mod sum;
mod svr;
#[cfg(test)]
mod tests;

use ndarray::Array2;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use error::FitError;
pub use forest::Forest;
pub use kernel::{Kernel, KernelMachine};
pub use linear::Linear;
pub use range::Range;
pub use robust::spread;
pub use screen::screen;
pub use spec::{LARGEST_GAUSSIAN_C, LARGEST_POLYNOMIAL_C, MOST_TREES, Spec};
pub use sum::Sum;

pub(crate) use scratch::scratch;

/// A fitted regression, by its kind.
#[derive(Clone, Debug, Deserialize, PartialEq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Regressor {
    Linear(Linear),
    KernelMachine(KernelMachine),
    Forest(Forest),
    Sum(Sum),
}

impl Regressor {
    /// The target at `x`, one standardised value a feature in the order of the
    /// columns that it was fitted to. Not a number if one of `x` is not, or if
    /// there are not [`Regressor::inputs`] of them.
    ///
    /// Outside of the range of the training each family continues in its own
    /// way; see [`Linear`], [`KernelMachine`] and [`Forest`].
    pub fn predict(&self, x: &[f64]) -> f64 {
        if x.len() != self.inputs() || x.iter().any(|value| value.is_nan()) {
            return f64::NAN;
        }
        match self {
            Regressor::Linear(linear) => linear.predict(x),
            Regressor::KernelMachine(machine) => machine.predict(x),
            Regressor::Forest(forest) => forest.predict(x),
            Regressor::Sum(sum) => sum.predict(x),
        }
    }

    /// How many features it was fitted to.
    pub fn inputs(&self) -> usize {
        match self {
            Regressor::Linear(linear) => linear.inputs(),
            Regressor::KernelMachine(machine) => machine.inputs(),
            Regressor::Forest(forest) => forest.inputs(),
            Regressor::Sum(sum) => sum.inputs(),
        }
    }

    /// Whether it can predict: what was read from a file may not fit together.
    /// The error says what does not.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Regressor::Linear(linear) => linear.check(),
            Regressor::KernelMachine(machine) => machine.check(),
            Regressor::Forest(forest) => forest.check(),
            Regressor::Sum(sum) => sum.check(),
        }
    }
}

/// Fits `spec` to the rows of `x` (a column a feature, standardised) and their
/// targets `y` (logarithms).
///
/// With `weights` (one a row, at least 0, 1 for a row to believe) these are
/// used; without, [`screen`] finds them, so that slowed rows do no harm. The
/// linear regression and the forest take weights as they are; support vector
/// machines leave out rows of less than half of the largest weight.
/// `seed` decides what is random, in the forest only: equal arguments give
/// equal regressors. Without features a linear regression is a constant, the
/// weighted mean of the targets.
///
/// # Errors
///
/// When there is too little or nothing to learn from, when a number is not
/// finite, or when the family's solver fails; see [`FitError`].
pub fn fit(
    spec: &Spec,
    x: &Array2<f64>,
    y: &[f64],
    weights: Option<&[f64]>,
    seed: u64,
) -> Result<Regressor, FitError> {
    spec.check()?;
    check(spec, x, y)?;
    let found;
    let weights = match weights {
        Some(weights) => weights,
        None => {
            found = screen(x, y)?;
            &found
        }
    };
    check_weights(spec, weights, x.nrows())?;
    match *spec {
        Spec::Nothing => Ok(Regressor::Linear(Linear::zero())),
        Spec::Linear { l2 } => linear::fit(x, y, weights, l2).map(Regressor::Linear),
        Spec::Sum { whole } => sum::fit(x, y, weights, whole).map(Regressor::Sum),
        Spec::Polynomial { c, epsilon, degree } => {
            let kernel = Kernel::Polynomial { degree };
            svr::fit(kernel, c, epsilon, x, y, weights).map(Regressor::KernelMachine)
        }
        Spec::Gaussian { c, epsilon, gamma } => {
            let kernel = Kernel::Gaussian { gamma };
            svr::fit(kernel, c, epsilon, x, y, weights).map(Regressor::KernelMachine)
        }
        Spec::Forest {
            trees,
            depth,
            min_leaf,
        } => {
            let shape = grow::Shape {
                trees,
                depth,
                min_leaf,
            };
            grow::fit(&shape, x, y, weights, seed).map(Regressor::Forest)
        }
    }
}

fn check(spec: &Spec, x: &Array2<f64>, y: &[f64]) -> Result<(), FitError> {
    let linear = matches!(spec, Spec::Nothing | Spec::Linear { .. } | Spec::Sum { .. });
    if x.ncols() == 0 && !linear {
        return Err(FitError::NoFeatures);
    }
    check_finite(x, y)?;
    enough(spec, x.nrows())?;
    let largest = y.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    let differs = |value: &f64| (value - y[0]).abs() > 1e-12 * largest;
    // A linear regression may be its intercept alone or nothing, a sum its whole.
    if !linear && !y.iter().any(differs) {
        return Err(FitError::ConstantTarget);
    }
    Ok(())
}

pub(crate) fn check_finite(x: &Array2<f64>, y: &[f64]) -> Result<(), FitError> {
    lengths("targets", y.len(), x.nrows())?;
    for ((row, column), value) in x.indexed_iter() {
        if !value.is_finite() {
            return Err(FitError::Value { row, column });
        }
    }
    match y.iter().position(|value| !value.is_finite()) {
        Some(row) => Err(FitError::Target { row }),
        None => Ok(()),
    }
}

fn check_weights(spec: &Spec, weights: &[f64], rows: usize) -> Result<(), FitError> {
    lengths("weights", weights.len(), rows)?;
    let bad = |weight: &f64| !weight.is_finite() || *weight < 0.0;
    if let Some(row) = weights.iter().position(bad) {
        return Err(FitError::Weight { row });
    }
    enough(spec, weights.iter().filter(|weight| **weight > 0.0).count())
}

pub(crate) fn lengths(what: &'static str, found: usize, expected: usize) -> Result<(), FitError> {
    if found == expected {
        return Ok(());
    }
    Err(FitError::Lengths {
        what,
        found,
        expected,
    })
}

fn enough(spec: &Spec, rows: usize) -> Result<(), FitError> {
    let needed = spec.fewest_rows();
    if rows >= needed {
        return Ok(());
    }
    Err(FitError::TooFewRows {
        family: spec.family(),
        rows,
        needed,
    })
}

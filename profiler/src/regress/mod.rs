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

#[cfg(test)]
pub(crate) mod fixtures;
mod forest;
mod kernel;
mod linear;
mod sum;
#[cfg(test)]
mod tests;

use std::fmt;

use ndarray::{Array2, ArrayView1, Axis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use self::linear::{FUNCTIONS, expand, ranges};
use crate::median;

pub use forest::Forest;
pub use kernel::{Kernel, KernelMachine};
pub use linear::Linear;
pub use sum::Sum;

/// A fitted regression, by its kind.
#[derive(Clone, Debug, Deserialize, PartialEq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Regressor {
    Linear(Linear),
    KernelMachine(KernelMachine),
    Forest(Forest),
    Sum(Sum),
}

/// What all kinds have in common.
trait Regression {
    /// How many features it was fitted to.
    fn inputs(&self) -> usize;

    /// The target at as many values, none of which is not a number.
    fn predict(&self, x: &[f64]) -> f64;

    /// Whether its parts fit together; the error says what does not.
    fn check(&self) -> Result<(), String>;
}

impl Regressor {
    fn kind(&self) -> &dyn Regression {
        match self {
            Regressor::Linear(linear) => linear,
            Regressor::KernelMachine(machine) => machine,
            Regressor::Forest(forest) => forest,
            Regressor::Sum(sum) => sum,
        }
    }

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
        self.kind().predict(x)
    }

    /// How many features it was fitted to.
    pub fn inputs(&self) -> usize {
        self.kind().inputs()
    }

    /// Whether it can predict: what was read from a file may not fit together.
    /// The error says what does not.
    pub fn check(&self) -> Result<(), String> {
        self.kind().check()
    }
}

/// Why [`fit`] gave no regressor.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum FitError {
    #[error("no features to fit to: keep at least one")]
    NoFeatures,
    #[error("{rows} rows are too few for {family}, which needs {needed}: profile more")]
    TooFewRows {
        family: &'static str,
        rows: usize,
        needed: usize,
    },
    #[error("every row has the same target: there is nothing to learn")]
    ConstantTarget,
    #[error("{family} did not converge: try a smaller c or a larger epsilon")]
    NotConverged { family: &'static str },
    #[error("{family} could not be solved: {reason}")]
    Solver {
        family: &'static str,
        reason: String,
    },
}

/// Fits `spec` to the rows of `x` (a column a feature, standardised), their targets `y`
/// (logarithms) and weights (at least 0, 1 for a row to believe, see [`screen`]), which are
/// finite and equally many.
///
/// The linear regression, the sum and the forest take weights as they are; support vector
/// machines leave out rows of less than half of the largest weight.
/// `seed` decides what is random, in the forest only: equal arguments give
/// equal regressors. Without features a linear regression is a constant, the
/// weighted mean of the targets.
///
/// # Errors
///
/// When there is too little or nothing to learn from, or when the family's solver fails; see
/// [`FitError`].
pub fn fit(
    spec: &Spec,
    x: &Array2<f64>,
    y: &[f64],
    weights: &[f64],
    seed: u64,
) -> Result<Regressor, FitError> {
    let linear = matches!(spec, Spec::Nothing | Spec::Linear { .. } | Spec::Sum { .. });
    if x.ncols() == 0 && !linear {
        return Err(FitError::NoFeatures);
    }
    let rows = weights.iter().filter(|weight| **weight > 0.0).count();
    let needed = spec.fewest_rows();
    if rows < needed {
        return Err(FitError::TooFewRows {
            family: spec.family(),
            rows,
            needed,
        });
    }
    let largest = y.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    let differs = |value: &f64| (value - y[0]).abs() > 1e-12 * largest;
    // A linear regression may be its intercept alone or nothing, a sum its whole.
    if !linear && !y.iter().any(differs) {
        return Err(FitError::ConstantTarget);
    }
    match *spec {
        Spec::Nothing => Ok(Regressor::Linear(Linear::zero())),
        Spec::Linear { l2 } => linear::fit(x, y, weights, l2).map(Regressor::Linear),
        Spec::Sum { whole } => Ok(Regressor::Sum(sum::fit(x, y, weights, whole))),
        Spec::Polynomial { c, epsilon, degree } => {
            let kernel = Kernel::Polynomial { degree };
            kernel::fit(kernel, c, epsilon, x, y, weights).map(Regressor::KernelMachine)
        }
        Spec::Gaussian { c, epsilon, gamma } => {
            let kernel = Kernel::Gaussian { gamma };
            kernel::fit(kernel, c, epsilon, x, y, weights).map(Regressor::KernelMachine)
        }
        Spec::Forest {
            trees,
            depth,
            min_leaf,
        } => forest::fit((trees, depth, min_leaf), x, y, weights, seed).map(Regressor::Forest),
    }
}

/// How far outside of the training a number is followed, in widths of its
/// range. Further out it counts as that far.
const MARGIN: f64 = 0.5;

/// The smallest and the largest value of a number in the training.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    pub low: f64,
    pub high: f64,
}

impl Range {
    /// The range of some values.
    pub fn of<'a>(values: impl IntoIterator<Item = &'a f64>) -> Range {
        let empty = Range {
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
        };
        values.into_iter().fold(empty, |range, &value| Range {
            low: range.low.min(value),
            high: range.high.max(value),
        })
    }

    /// Whether it is one: finite, and not upside down.
    pub fn is_valid(&self) -> bool {
        self.low.is_finite() && self.high.is_finite() && self.low <= self.high
    }

    /// `value`, no further outside than half of the width.
    pub fn limit(&self, value: f64) -> f64 {
        let margin = MARGIN * (self.high - self.low);
        value.clamp(self.low - margin, self.high + margin)
    }
}

/// Buffers up to this many numbers live on the stack. Models have 4 to 12
/// inputs.
const STACK: usize = 32;

/// Calls `use_it` with `length` zeros.
pub(crate) fn scratch<R>(length: usize, use_it: impl FnOnce(&mut [f64]) -> R) -> R {
    if length <= STACK {
        use_it(&mut [0.0; STACK][..length])
    } else {
        use_it(&mut vec![0.0; length])
    }
}

/// A family of regressions and its hyper-parameters.
#[derive(Clone, Debug, Deserialize, PartialEq, JsonSchema, Serialize)]
#[serde(tag = "family", rename_all = "snake_case", deny_unknown_fields)]
pub enum Spec {
    /// The paper's linear regression (section 3.2, step 5), see
    /// [`Linear`]. `l2` is the weight of the squared
    /// coefficients against the mean squared error, of standardised columns.
    Linear { l2: f64 },
    /// Support vectors with the kernel (x · x' / d + 1)^degree for d features.
    /// `c` bounds a row's influence, for a target scaled to deviation 1;
    /// `epsilon` is the error that costs nothing, in the target's own unit
    /// (0.01 of a logarithm is 1 %).
    Polynomial { c: f64, epsilon: f64, degree: u32 },
    /// Support vectors with the kernel exp(-gamma |x - x'|² / d) for d
    /// features; `c` and `epsilon` as for the polynomial.
    Gaussian { c: f64, epsilon: f64, gamma: f64 },
    /// A random forest. `depth` counts levels
    /// with the root; `min_leaf` is the fewest rows of a leaf.
    Forest {
        trees: u16,
        depth: u16,
        min_leaf: usize,
    },
    /// Nothing is fitted: the target is 0 everywhere, so a prior stays as it is.
    Nothing,
    /// A sum of parts, weighed, see [`Sum`]. Whether the `whole` that
    /// they are parts of is one of them: else they make it up.
    Sum {
        #[serde(default = "has_whole")]
        whole: bool,
    },
}

/// Of models from before there was a choice.
fn has_whole() -> bool {
    true
}

impl Spec {
    /// The family's name, as in files and tables.
    pub fn family(&self) -> &'static str {
        match self {
            Spec::Linear { .. } => "linear",
            Spec::Polynomial { .. } => "polynomial",
            Spec::Gaussian { .. } => "gaussian",
            Spec::Forest { .. } => "forest",
            Spec::Nothing => "nothing",
            Spec::Sum { .. } => "sum",
        }
    }

    /// The fewest rows that it can be fitted to.
    pub fn fewest_rows(&self) -> usize {
        match self {
            Spec::Nothing => 0,
            Spec::Linear { .. }
            | Spec::Polynomial { .. }
            | Spec::Gaussian { .. }
            | Spec::Sum { .. } => 4,
            Spec::Forest { min_leaf, .. } => min_leaf.saturating_mul(2).max(4),
        }
    }
}

/// The family and its hyper-parameters on one line, for tables.
impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spec::Linear { l2 } => write!(f, "linear, l2 {l2}"),
            Spec::Polynomial { c, epsilon, degree } => {
                write!(
                    f,
                    "polynomial SVR, degree {degree}, C {c}, epsilon {epsilon}"
                )
            }
            Spec::Gaussian { c, epsilon, gamma } => {
                write!(f, "Gaussian SVR, gamma {gamma}, C {c}, epsilon {epsilon}")
            }
            Spec::Forest {
                trees,
                depth,
                min_leaf,
            } => write!(f, "forest, {trees} trees, depth {depth}, leaf {min_leaf}"),
            Spec::Nothing => write!(f, "nothing fitted"),
            Spec::Sum { .. } => write!(f, "sum of parts"),
        }
    }
}

/// The deviation of logarithms that rows are never held to: a run 5 % off its
/// expectation is nothing unusual, however well the others agree.
const USUAL: f64 = 0.05;

/// L2 of the regression that residuals are taken from.
const L2: f64 = 1e-4;

/// Huber's bend, in deviations: 95 % efficient on normal values.
const BEND: f64 = 1.345;

/// Rounds of Huber's weights, which find their way past many outliers, and
/// then of Tukey's, which forget them wholly.
const HUBER_ROUNDS: usize = 2;
const TUKEY_ROUNDS: usize = 2;

/// Of the basis functions, x, x² and ln x: they follow a curve as well as all
/// seven, in a fifth of the time.
const FOLLOWED: [usize; 3] = [0, 1, 5];

/// The number of nearest neighbours ...
const NEIGHBOURS: usize = 6;

/// ... and how many of them must agree with a row to confirm it.
const VOUCHERS: usize = 2;

/// How far to believe each row: a weight from 0 (another program ran beside
/// it, say) to 1.
///
/// `x` has a standardised feature a column, `y` is a logarithm of time. Two
/// witnesses are heard, and a row is weighed by the kinder one:
///
/// - its residual in a linear regression on x, x² and ln x of every feature,
///   which is repeated with the weights that follow from its own residuals
///   (Huber's, then Tukey's bisquare at 4.685 deviations; the deviation from
///   the median absolute residual, at least 5 %);
/// - how far its residual is from those of its neighbours: where the linear
///   form is wrong, as in a small region with rules of its own, rows are wrong
///   together. Two of the six nearest rows must agree.
///
/// Fewer than 8 rows are all believed.
///
/// # Errors
///
/// When the regression cannot be solved.
pub fn screen(x: &Array2<f64>, y: &[f64]) -> Result<Vec<f64>, FitError> {
    let rows = x.nrows();
    if rows < NEIGHBOURS + 2 {
        return Ok(vec![1.0; rows]);
    }
    let residuals = robust_residuals(x, y)?;
    let cut = CUT * spread(&residuals).max(USUAL);
    let weights = residuals.iter().enumerate().map(|(row, &residual)| {
        let alone = bisquare(residual, cut);
        // Most rows need no one to vouch for them.
        if alone > 0.9 {
            return alone;
        }
        alone.max(bisquare(disagreement(x, &residuals, row), cut))
    });
    Ok(weights.collect())
}

/// What a linear regression that outliers do not move leaves unexplained.
fn robust_residuals(x: &Array2<f64>, y: &[f64]) -> Result<Vec<f64>, FitError> {
    let all = expand(x, &ranges(x));
    let followed: Vec<usize> = (0..all.ncols())
        .filter(|column| FOLLOWED.contains(&(column % FUNCTIONS)))
        .collect();
    let columns = all.select(Axis(1), &followed);
    let mut weights = vec![1.0; y.len()];
    for round in 0..HUBER_ROUNDS + TUKEY_ROUNDS {
        let residuals = residuals(&columns, y, &weights)?;
        let scale = spread(&residuals).max(USUAL);
        for (weight, residual) in weights.iter_mut().zip(residuals) {
            *weight = if round < HUBER_ROUNDS {
                huber(residual, BEND * scale)
            } else {
                bisquare(residual, CUT * scale)
            };
        }
    }
    residuals(&columns, y, &weights)
}

fn residuals(columns: &Array2<f64>, y: &[f64], weights: &[f64]) -> Result<Vec<f64>, FitError> {
    let solution = linear::solve(columns, y, weights, L2)?;
    let rows = columns.axis_iter(Axis(0)).zip(y);
    Ok(rows.map(|(row, y)| y - solution.at(row)).collect())
}

/// How far a row's residual is from those of its neighbours: from the one that
/// agrees second best of the nearest six.
fn disagreement(x: &Array2<f64>, residuals: &[f64], row: usize) -> f64 {
    let mut others: Vec<(f64, usize)> = (0..residuals.len())
        .filter(|&other| other != row)
        .map(|other| (distance(x.row(row), x.row(other)), other))
        .collect();
    others.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let nearest = others.iter().take(NEIGHBOURS);
    let mut differences: Vec<f64> = nearest
        .map(|&(_, other)| (residuals[row] - residuals[other]).abs())
        .collect();
    differences.sort_by(f64::total_cmp);
    differences[VOUCHERS - 1]
}

fn distance(a: ArrayView1<f64>, b: ArrayView1<f64>) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// The median absolute deviation of normal values is this part of their
/// deviation.
const NORMAL: f64 = 0.674_489_750_196_082;

/// Tukey's bisquare gives up values beyond this many deviations; 4.685 keeps
/// 95 % of the efficiency of least squares on normal values.
const CUT: f64 = 4.685;

/// The deviation of values around 0 (residuals), from the median of their distances
/// from it: up to half of them may be outliers.
pub fn spread(values: &[f64]) -> f64 {
    median(values.iter().map(|value| value.abs())).unwrap_or(0.0) / NORMAL
}

/// Huber's weight of a residual: 1 up to `bend`, then falling as 1 / residual.
/// Least squares repeated with it always arrives, from wherever it starts.
fn huber(residual: f64, bend: f64) -> f64 {
    if residual.abs() <= bend {
        1.0
    } else {
        bend / residual.abs()
    }
}

/// Tukey's bisquare weight of a residual: near 1 around 0, and 0 from `cut` on.
fn bisquare(residual: f64, cut: f64) -> f64 {
    if residual.abs() >= cut {
        return 0.0;
    }
    (1.0 - (residual / cut).powi(2)).powi(2)
}

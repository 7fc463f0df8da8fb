//! The specification of a fit: a family and its hyper-parameters.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FitError;

/// The most trees of a forest: more cost time and file size and gain nothing.
pub const MOST_TREES: u16 = 64;

/// The largest `c` of a Gaussian. The solver cannot be stopped, and its steps
/// grow with `c`: 400 rows take about 0.05 s at 10, 0.1 to 1 s at 100, and ten
/// times as long at 1000, for a hardly better fit.
pub const LARGEST_GAUSSIAN_C: f64 = 100.0;

/// The largest `c` of a polynomial, whose kernel is larger: 400 rows take
/// about 0.1 s at 0.3 and 1 s at 10.
pub const LARGEST_POLYNOMIAL_C: f64 = 10.0;

/// A family of regressions and its hyper-parameters.
#[derive(Clone, Debug, Deserialize, PartialEq, JsonSchema, Serialize)]
#[serde(tag = "family", rename_all = "snake_case", deny_unknown_fields)]
pub enum Spec {
    /// The paper's linear regression (section 3.2, step 5), see
    /// [`Linear`](super::Linear). `l2` is the weight of the squared
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
    /// A random forest of at most [`MOST_TREES`] trees. `depth` counts levels
    /// with the root; `min_leaf` is the fewest rows of a leaf.
    Forest {
        trees: u16,
        depth: u16,
        min_leaf: usize,
    },
    /// Nothing is fitted: the target is 0 everywhere, so a prior stays as it is.
    Nothing,
    /// A sum of parts, weighed, see [`Sum`](super::Sum). Whether the `whole` that
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

    /// Whether its hyper-parameters make sense.
    pub(super) fn check(&self) -> Result<(), FitError> {
        let family = self.family();
        let within = |name, value: f64, least: f64, most: f64, allowed| {
            if value >= least && value <= most {
                return Ok(());
            }
            Err(FitError::Parameter {
                family,
                name,
                value,
                allowed,
            })
        };
        let tube = |epsilon: f64| within("epsilon", epsilon, 1e-6, 1e3, "1e-6 to 1000");
        match *self {
            Spec::Linear { l2 } => within("l2", l2, 1e-12, 1e12, "1e-12 to 1e12"),
            Spec::Polynomial { c, epsilon, degree } => {
                within("c", c, 1e-6, LARGEST_POLYNOMIAL_C, "1e-6 to 10")?;
                tube(epsilon)?;
                within("degree", f64::from(degree), 1.0, 8.0, "1 to 8")
            }
            Spec::Gaussian { c, epsilon, gamma } => {
                within("c", c, 1e-6, LARGEST_GAUSSIAN_C, "1e-6 to 100")?;
                tube(epsilon)?;
                within("gamma", gamma, 1e-6, 1e6, "1e-6 to 1e6")
            }
            Spec::Forest {
                trees,
                depth,
                min_leaf,
            } => {
                let most = f64::from(MOST_TREES);
                within("trees", f64::from(trees), 1.0, most, "1 to 64")?;
                within("depth", f64::from(depth), 1.0, 64.0, "1 to 64")?;
                within("min_leaf", min_leaf as f64, 1.0, 1e9, "at least 1")
            }
            Spec::Nothing | Spec::Sum { .. } => Ok(()),
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

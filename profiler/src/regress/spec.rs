//! The specification of a fit: a family and its hyper-parameters.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// A random forest. `depth` counts levels
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

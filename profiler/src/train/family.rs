//! The candidates: families of models, and the hyper-parameters of each.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::regress::Spec;
use crate::table::Table;

/// A family of models. The first is the prior itself, the next ones learn what multiplies it, the
/// others learn the seconds themselves. The order is that of preference
/// between models that are equally good: physics goes on where measurements
/// end, and simple goes before intricate.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// The prior as it is.
    Prior,
    /// The prior times one factor.
    PriorConstant,
    /// A weighed sum of the prior's parts, and of those that it leaves out.
    PriorParts,
    /// The prior times a linear correction on the paper's basis.
    PriorLinear,
    /// The prior times a correction by a support vector machine with a
    /// Gaussian kernel.
    PriorGaussian,
    /// The prior times a correction by a random forest.
    PriorForest,
    /// Linear on the paper's basis, with L2 (section 3.2, step 5).
    Linear,
    /// A support vector machine with a polynomial kernel.
    Polynomial,
    /// A support vector machine with a Gaussian kernel.
    Gaussian,
    /// A random forest.
    Forest,
}

impl Family {
    /// All of them, in the order of preference.
    pub const ALL: [Self; 10] = [
        Self::Prior,
        Self::PriorConstant,
        Self::PriorParts,
        Self::PriorLinear,
        Self::PriorGaussian,
        Self::PriorForest,
        Self::Linear,
        Self::Polynomial,
        Self::Gaussian,
        Self::Forest,
    ];

    /// Whether it multiplies the prior by something.
    pub fn over_prior(self) -> bool {
        self <= Self::PriorForest
    }

    /// Whether a fit takes so long that its hyper-parameters are searched on
    /// fewer rows.
    pub(super) fn is_slow(self) -> bool {
        matches!(
            self,
            Self::PriorGaussian
                | Self::Polynomial
                | Self::Gaussian
                | Self::PriorForest
                | Self::Forest
        )
    }

    /// Whether its hyper-parameters decide how far it extrapolates beyond the rows
    /// that it saw, so that they are searched there, too. Other corrections
    /// level off, and other models extrapolate in any case.
    pub(super) fn can_be_tamed(self) -> bool {
        self == Self::PriorLinear
    }

    /// The hyper-parameters that are tried. A slow family's number of
    /// clusters is searched with the first.
    pub(super) fn specs(self, table: &Table) -> Vec<Spec> {
        let linear = |l2| Spec::Linear { l2 };
        let gaussian = |(c, gamma)| Spec::Gaussian {
            c,
            epsilon: EPSILON,
            gamma,
        };
        let polynomial = |(c, degree)| Spec::Polynomial {
            c,
            epsilon: EPSILON,
            degree,
        };
        let forest = |(depth, min_leaf)| Spec::Forest {
            trees: 48,
            depth,
            min_leaf,
        };
        match self {
            Self::Prior => vec![Spec::Nothing],
            Self::PriorConstant => vec![linear(1.0)],
            Self::PriorParts => vec![Spec::Sum {
                whole: !table.complete,
            }],
            Self::PriorLinear => [1e-3, 1e-5, 1e-4, 1e-2, 1e-1, 1.0].map(linear).to_vec(),
            Self::Linear => [1e-4, 1e-6, 1e-5, 1e-3, 1e-2, 1e-1].map(linear).to_vec(),
            Self::PriorGaussian => [
                (10.0, 1.0),
                (1.0, 0.1),
                (1.0, 0.5),
                (10.0, 0.3),
                (10.0, 3.0),
                (30.0, 0.5),
                (30.0, 2.0),
            ]
            .map(gaussian)
            .to_vec(),
            Self::Gaussian => [
                (10.0, 0.1),
                (10.0, 0.03),
                (10.0, 0.3),
                (30.0, 0.03),
                (30.0, 0.1),
            ]
            .map(gaussian)
            .to_vec(),
            Self::Polynomial => [(0.1, 3), (1.0, 2), (0.01, 3)].map(polynomial).to_vec(),
            Self::PriorForest | Self::Forest => [(12, 2), (12, 1), (8, 4)].map(forest).to_vec(),
        }
    }
}

/// The relative error that costs a support vector machine nothing.
const EPSILON: f64 = 0.02;

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(match self {
            Self::Prior => "prior",
            Self::PriorConstant => "prior x factor",
            Self::PriorParts => "prior x parts",
            Self::PriorLinear => "prior x linear",
            Self::PriorGaussian => "prior x SVR, Gaussian",
            Self::PriorForest => "prior x forest",
            Self::Linear => "linear",
            Self::Polynomial => "SVR, polynomial",
            Self::Gaussian => "SVR, Gaussian",
            Self::Forest => "random forest",
        })
    }
}

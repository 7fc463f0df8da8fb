//! The candidates: families of models, and the search for the hyper-parameters of each and for the
//! number of clusters, within the rows that a model learns from.

use std::cmp::Ordering;
use std::fmt;
use std::sync::atomic::{self, AtomicBool};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Recipe;
use super::comparison::{HeldOut, LATE, score};
use super::division::{Division, FitPlan, Model, Training};
use crate::cluster::{Features, Selection};
use crate::regress::Spec;
use crate::table::Table;
use crate::validate::Accuracy;

/// Why a family gives no model.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    Interrupted,
    Because(String),
}

/// The result of a family on a division.
pub struct FamilyFit {
    pub model: Model,
    pub plan: FitPlan,
    pub held_out: Vec<HeldOut>,
}

/// Fits a family to the training rows of a division alone, with the hyper-parameters and the
/// number of clusters that are best within them, and predicts the rows held out.
pub fn fit(
    division: &Division,
    family: Family,
    recipe: &Recipe,
    stop: &AtomicBool,
) -> Result<FamilyFit, Failure> {
    // The prior takes no fit.
    if family != Family::Prior && recipe.is_late() {
        return Err(late());
    }
    let features = division.training.features(family.over_prior());
    let threshold = recipe.threshold_of(family);
    let mut last = String::new();
    for plan in search(&division.training, family, recipe, stop)? {
        let selection = match family {
            Family::PriorParts => Some(division.training.parts()),
            _ => features.select(plan.clusters, threshold),
        };
        let Some(selection) = selection else {
            last = too_few_features(plan.clusters);
            continue;
        };
        match division.fit(&selection, family, &plan.spec, recipe.seed) {
            Ok((model, held_out)) => {
                return Ok(FamilyFit {
                    model,
                    plan,
                    held_out,
                });
            }
            Err(reason) => last = reason,
        }
    }
    Err(Failure::Because(last))
}

/// What to fit to `training`, the best first. A family that is quick to fit
/// has every number of clusters tried with all hyper-parameters; a slow one
/// every second number with the family's first, all with the best number, and
/// the numbers next to it with the best of them. What could not be fitted is
/// left out.
fn search(
    training: &Training,
    family: Family,
    recipe: &Recipe,
    stop: &AtomicBool,
) -> Result<Vec<FitPlan>, Failure> {
    let specs = family.specs(training.table);
    let counts = cluster_counts(training, family, recipe);
    if let ([spec], [clusters]) = (&specs[..], &counts[..]) {
        return Ok(vec![FitPlan {
            spec: spec.clone(),
            clusters: *clusters,
        }]);
    }
    let mut search = Search {
        inner: (Division::within(training, family, recipe).map_err(Failure::Because)?)
            .into_iter()
            .map(|division| (division.training.features(family.over_prior()), division))
            .collect(),
        family,
        recipe,
        stop,
        tried: Vec::new(),
        last: String::new(),
    };
    if family.is_slow() {
        let every_second: Vec<usize> = counts.iter().rev().step_by(2).copied().collect();
        search.attempt(&every_second, &specs[..1])?;
        let best = search.best().map_or(counts[0], |plan| plan.clusters);
        search.attempt(&[best], &specs[1..])?;
        if let Some(FitPlan { spec, clusters }) = search.best().cloned() {
            let near = |count: &&usize| count.abs_diff(clusters) <= 1;
            let near: Vec<usize> = counts.iter().filter(near).copied().collect();
            search.attempt(&near, &[spec])?;
        }
    } else {
        search.attempt(&counts, &specs)?;
    }
    search.ranked()
}

/// Why a family was left out after the recipe's deadline.
fn late() -> Failure {
    Failure::Because(LATE.to_owned())
}

/// Why a number of clusters could not be tried.
fn too_few_features(clusters: usize) -> String {
    format!("there are no {clusters} features that differ")
}

/// Plans, and the errors of the models that they led to.
struct Search<'a> {
    inner: Vec<(Features<'a>, Division<'a>)>,
    family: Family,
    recipe: &'a Recipe,
    stop: &'a AtomicBool,
    tried: Vec<(f64, FitPlan)>,
    /// Why the last plan failed that did.
    last: String,
}

impl Search<'_> {
    /// Tries each number of clusters with each of the hyper-parameters, unless
    /// it has.
    fn attempt(&mut self, counts: &[usize], specs: &[Spec]) -> Result<(), Failure> {
        let threshold = self.recipe.threshold_of(self.family);
        for &clusters in counts {
            let features = self.inner.iter().map(|(features, _)| features);
            let selections: Option<Vec<Selection>> = features
                .map(|features| features.select(clusters, threshold))
                .collect();
            let Some(selections) = selections else {
                self.last = too_few_features(clusters);
                continue;
            };
            for spec in specs {
                let spec = spec.clone();
                let plan = FitPlan { spec, clusters };
                if self.tried.iter().any(|(_, known)| *known == plan) {
                    continue;
                }
                match self.error(&plan.spec, &selections) {
                    Ok(error) => self.tried.push((error, plan)),
                    Err(_) if self.recipe.is_late() => return Err(late()),
                    Err(Failure::Because(reason)) => self.last = reason,
                    Err(Failure::Interrupted) => return Err(Failure::Interrupted),
                }
            }
        }
        Ok(())
    }

    /// The error with a selection of features an inner fold.
    fn error(&self, spec: &Spec, selections: &[Selection]) -> Result<f64, Failure> {
        let mut pairs = Vec::new();
        let mut beyond = None;
        for ((_, division), selection) in self.inner.iter().zip(selections) {
            if self.stop.load(atomic::Ordering::Relaxed) {
                return Err(Failure::Interrupted);
            }
            if self.recipe.is_late() {
                return Err(late());
            }
            let fit = division.fit(selection, self.family, spec, self.recipe.seed);
            let (_, held_out) = fit.map_err(Failure::Because)?;
            let held_out = held_out.iter().map(|h| (h.measured, h.predicted));
            if division.beyond {
                beyond = Some(Accuracy::of(&held_out.collect::<Vec<_>>()).mape);
            } else {
                pairs.extend(held_out);
            }
        }
        Ok(score(Accuracy::of(&pairs).mape, &[], beyond).0)
    }

    /// The plan of the least error.
    fn best(&self) -> Option<&FitPlan> {
        let best = self.tried.iter().min_by(better_first);
        best.map(|(_, plan)| plan)
    }

    /// The best, then the others, for where a fit with it fails on all rows.
    fn ranked(mut self) -> Result<Vec<FitPlan>, Failure> {
        if self.tried.is_empty() {
            return Err(Failure::Because(self.last));
        }
        self.tried.sort_by(|a, b| better_first(&a, &b));
        Ok(self.tried.into_iter().map(|(_, plan)| plan).collect())
    }
}

/// By error; of equal ones the fewest inputs.
fn better_first(a: &&(f64, FitPlan), b: &&(f64, FitPlan)) -> Ordering {
    a.0.total_cmp(&b.0).then(a.1.clusters.cmp(&b.1.clusters))
}

/// The numbers of clusters to try: those of the recipe, as far as there are so
/// many features that differ. A correction may have fewer; one factor and the prior itself
/// have none.
fn cluster_counts(training: &Training, family: Family, recipe: &Recipe) -> Vec<usize> {
    if matches!(
        family,
        Family::Prior | Family::PriorConstant | Family::PriorParts
    ) {
        return vec![0];
    }
    let most = training.features(family.over_prior()).distinct().max(1);
    let most = most.min(*recipe.clusters.end());
    let least = match family.over_prior() {
        true => 1,
        false => most.min(*recipe.clusters.start()),
    };
    (least..=most).collect()
}

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
    fn specs(self, table: &Table) -> Vec<Spec> {
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

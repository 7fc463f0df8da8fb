//! The search for a family's hyper-parameters and number of clusters, within
//! the rows that a model may learn from.

use std::sync::atomic::{AtomicBool, Ordering};

use super::model::{Model, Plan};
use super::training::Training;
use super::validation::HeldOut;
use super::{Family, Recipe};
use crate::cluster::Features;
use crate::validate::{Accuracy, Folds, TooFewGroups};

/// More inputs must lower the error by this part to be worth their while.
const WORTHWHILE: f64 = 0.01;

/// Why a family gives no model.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    Interrupted,
    Because(String),
}

/// One of the inner folds.
struct Inner<'a> {
    training: Training<'a>,
    features: Features<'a>,
    held_out: Vec<usize>,
}

impl Inner<'_> {
    fn predict(&self, model: &Model) -> Result<Vec<HeldOut>, String> {
        let rows = self.held_out.iter();
        rows.map(|&row| model.held_out(self.training.table, row))
            .collect()
    }
}

/// What to fit to `training`, the best first: every number of clusters with the
/// family's first hyper-parameters, then all hyper-parameters with the best
/// number. What could not be fitted is left out.
pub fn search(
    training: &Training,
    family: Family,
    recipe: &Recipe,
    stop: &AtomicBool,
) -> Result<Vec<Plan>, Failure> {
    let specs = family.specs();
    let counts = cluster_counts(training, family, recipe);
    let plan = |spec: usize, clusters| Plan {
        spec: specs[spec].clone(),
        clusters,
    };
    if let (1, [clusters]) = (specs.len(), &counts[..]) {
        return Ok(vec![plan(0, *clusters)]);
    }
    let inner = inner_folds(training, family, recipe).map_err(Failure::Because)?;
    let threshold = recipe.threshold_of(family);
    let mut tried: Vec<(f64, Plan)> = Vec::new();
    let mut last = String::new();
    let mut attempt = |plan: Plan, tried: &mut Vec<(f64, Plan)>| {
        let mut pairs = Vec::new();
        for fold in &inner {
            if stop.load(Ordering::Relaxed) {
                return Err(Failure::Interrupted);
            }
            let (rows, features) = (&fold.training, &fold.features);
            let held_out = Model::fit(rows, features, family, &plan, threshold, recipe.seed)
                .and_then(|model| fold.predict(&model));
            match held_out {
                Ok(held_out) => pairs.extend(held_out.iter().map(|h| (h.measured, h.predicted))),
                Err(reason) => {
                    last = reason;
                    return Ok(());
                }
            }
        }
        tried.push((Accuracy::of(&pairs).trimmed, plan));
        Ok(())
    };
    for &clusters in &counts {
        attempt(plan(0, clusters), &mut tried)?;
    }
    let clusters = fewest_good(&tried).unwrap_or(counts[0]);
    for spec in 1..specs.len() {
        attempt(plan(spec, clusters), &mut tried)?;
    }
    if tried.is_empty() {
        return Err(Failure::Because(last));
    }
    // Other numbers of clusters only serve where a fit with this one fails.
    tried.sort_by(|(a, of_a), (b, of_b)| {
        let other = |plan: &Plan| plan.clusters != clusters;
        other(of_a).cmp(&other(of_b)).then(a.total_cmp(b))
    });
    Ok(tried.into_iter().map(|(_, plan)| plan).collect())
}

/// The fewest clusters that are about as good as the best number.
fn fewest_good(tried: &[(f64, Plan)]) -> Option<usize> {
    let least = tried.iter().map(|(error, _)| *error).reduce(f64::min)?;
    let good = tried
        .iter()
        .filter(|(error, _)| *error <= least * (1.0 + WORTHWHILE));
    good.map(|(_, plan)| plan.clusters).min()
}

/// The numbers of clusters to try: those of the recipe, as far as there are so
/// many features that differ. A correction may have fewer, and one factor has
/// none.
fn cluster_counts(training: &Training, family: Family, recipe: &Recipe) -> Vec<usize> {
    if family == Family::PriorConstant {
        return vec![0];
    }
    let most = training.features(family.over_prior()).distinct().max(1);
    let most = most.min(*recipe.clusters.end());
    let least = match family.over_prior() {
        true => 1,
        false => most.min(*recipe.clusters.start()),
    };
    let step = if family.is_slow() { 2 } else { 1 };
    (least..=most).step_by(step).collect()
}

fn inner_folds<'a>(
    training: &Training<'a>,
    family: Family,
    recipe: &Recipe,
) -> Result<Vec<Inner<'a>>, String> {
    let mut rows = training.believed();
    let parts = rows.len() / recipe.search_rows.max(1);
    if family.is_slow() && parts > 1 {
        if let Ok(parts) = folds(training, &rows, parts, recipe.seed) {
            rows = parts
                .held_out(0)
                .into_iter()
                .map(|place| rows[place])
                .collect();
        }
    }
    let folds = folds(training, &rows, recipe.inner_folds, recipe.seed)
        .map_err(|error| error.to_string())?;
    let side = |places: Vec<usize>| -> Vec<usize> {
        places.into_iter().map(|place| rows[place]).collect()
    };
    let inner = (0..folds.count()).map(|fold| {
        let kept = side(folds.training(fold));
        let training = training.only(|row| kept.binary_search(&row).is_ok());
        Inner {
            features: training.features(family.over_prior()),
            held_out: side(folds.held_out(fold)),
            training,
        }
    });
    Ok(inner.collect())
}

fn folds(
    training: &Training,
    rows: &[usize],
    count: usize,
    seed: u64,
) -> Result<Folds, TooFewGroups> {
    let group = |&row: &usize| training.table.rows[row].group.as_str();
    let groups: Vec<&str> = rows.iter().map(group).collect();
    Folds::grouped(&groups, count, seed)
}

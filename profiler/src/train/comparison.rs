//! The comparison of families: each is fitted without each fold, without the rows
//! beyond, and to all rows.

use std::sync::atomic::AtomicBool;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::division::{Division, Model};
use super::tune::{Failure, FamilyFit, fit};
use super::{Family, Recipe, TrainError};
use crate::median;
use crate::regress::{Spec, spread};
use crate::table::Table;
use crate::validate::{Accuracy, Beyond, Folds, standard_error};

/// A table with its divisions for validation.
pub struct Comparison<'a> {
    recipe: &'a Recipe,
    folds: usize,
    /// The folds, then all rows, then, if any, the rows beyond.
    divisions: Vec<Division<'a>>,
}

/// The results of a family on all divisions.
pub struct FamilyResult {
    pub candidate: Candidate,
    /// Fitted to all rows.
    pub model: Model,
    /// Every row, predicted by the model of the fold without it.
    pub held_out: Vec<HeldOut>,
}

impl<'a> Comparison<'a> {
    /// Divides the table's rows, and weighs those of each training part.
    pub fn new(
        table: &'a Table,
        recipe: &'a Recipe,
        folds: &Folds,
        beyond: Option<&[usize]>,
        stop: &AtomicBool,
    ) -> Result<Self, TrainError> {
        let mut held: Vec<Vec<usize>> = (0..folds.count()).map(|f| folds.held_out(f)).collect();
        held.push(Vec::new());
        held.extend(beyond.map(<[usize]>::to_vec));
        let divide = |at: usize| Some(Division::of(table, &held[at]));
        let divisions = super::run(recipe.threads, held.len(), divide, &mut |_, _| {}, stop)?;
        Ok(Self {
            recipe,
            folds: folds.count(),
            divisions,
        })
    }

    /// Fits every family to every division, the quick ones first, so that a deadline
    /// leaves out slow ones. Returns the families that could be fitted and those that
    /// could not, both in the order of preference.
    pub fn run(
        &self,
        progress: &mut dyn FnMut(usize, usize),
        stop: &AtomicBool,
    ) -> Result<(Vec<FamilyResult>, Vec<Failed>), TrainError> {
        let mut families = self.recipe.families.clone();
        families.sort_by_key(|family| (family.is_slow(), *family));
        let count = self.divisions.len();
        let job = |number: usize| {
            let division = &self.divisions[number % count];
            match fit(division, families[number / count], self.recipe, stop) {
                Ok(fit) => Some(Ok(fit)),
                Err(Failure::Because(reason)) => Some(Err(reason)),
                Err(Failure::Interrupted) => None,
            }
        };
        let jobs = families.len() * count;
        let results = super::run(self.recipe.threads, jobs, job, progress, stop)?;
        let mut results = results.into_iter();
        let mut entries = Vec::new();
        let mut failed = Vec::new();
        for family in families {
            let fits: Vec<Result<FamilyFit, String>> = results.by_ref().take(count).collect();
            let fits: Result<Vec<FamilyFit>, String> = fits.into_iter().collect();
            match fits.map(|fits| self.entry(family, fits)) {
                Ok(entry) => entries.extend(entry),
                Err(reason) => failed.push(Failed { family, reason }),
            }
        }
        entries.sort_by_key(|entry| entry.candidate.family);
        failed.sort_by_key(|failed| failed.family);
        Ok((entries, failed))
    }

    /// The model that is fitted without a fold.
    #[cfg(test)]
    pub fn model(&self, fold: usize, family: Family, stop: &AtomicBool) -> Result<Model, Failure> {
        Ok(fit(&self.divisions[fold], family, self.recipe, stop)?.model)
    }

    /// The rows that are believed, ascending.
    pub fn believed(&self) -> Vec<usize> {
        self.divisions[self.folds].training.believed()
    }

    /// Puts together the fits to the folds, to all rows and without the rows
    /// beyond.
    fn entry(&self, family: Family, mut fits: Vec<FamilyFit>) -> Option<FamilyResult> {
        let mut rest = fits.split_off(self.folds).into_iter();
        let folds: Vec<Vec<HeldOut>> = fits.into_iter().map(|fit| fit.held_out).collect();
        let mut held_out = folds.concat();
        held_out.sort_by_key(|held| held.row);
        let FamilyFit {
            mut model, plan, ..
        } = rest.next()?;
        let ends = rest.next().map(|fit| fit.held_out);

        let rows = self.believed();
        let believed = |held_out: &[HeldOut]| {
            let held = held_out.iter().copied();
            let kept = held.filter(|held| rows.binary_search(&held.row).is_ok());
            accuracy(&kept.collect::<Vec<_>>()).mape
        };
        let errors: Vec<f64> = folds.iter().map(|fold| believed(fold)).collect();
        let (score, score_error) =
            score(believed(&held_out), &errors, ends.as_deref().map(believed));
        let folds: Vec<Accuracy> = folds.iter().map(|fold| accuracy(fold)).collect();
        let plain: Vec<f64> = folds.iter().map(|fold| fold.mape).collect();
        let log = |held: &HeldOut| (held.measured / held.predicted).ln();
        let logs: Vec<f64> = held_out.iter().map(log).collect();
        model.fitted.spread = spread(&logs);
        let inputs = model.fitted.inputs.iter();
        Some(FamilyResult {
            candidate: Candidate {
                family,
                spec: plan.spec,
                clusters: plan.clusters,
                inputs: inputs.map(|input| input.name.clone()).collect(),
                accuracy: accuracy(&held_out),
                believed: believed(&held_out),
                standard_error: standard_error(&plain),
                folds,
                beyond: ends.as_deref().map(accuracy),
                score,
                score_error,
            },
            model,
            held_out,
        })
    }
}

fn accuracy(held_out: &[HeldOut]) -> Accuracy {
    let pair = |held: &HeldOut| (held.measured, held.predicted);
    Accuracy::of(&held_out.iter().map(pair).collect::<Vec<_>>())
}

/// What decides between candidates, and its standard error, from the mean
/// absolute percentage errors of all folds together, of each, and of the rows
/// beyond the others.
///
/// Where there are rows beyond, it is the geometric mean of the error inside
/// and the error beyond, so that halving either is worth the same. The standard
/// error is that of the folds' errors, by their median deviation: one odd fold
/// must not make all candidates seem equal.
pub fn score(inside: f64, folds: &[f64], beyond: Option<f64>) -> (f64, f64) {
    let score = match beyond {
        Some(beyond) => (inside * beyond).sqrt(),
        None => inside,
    };
    let centre = median(folds).unwrap_or(0.0);
    let deviations: Vec<f64> = folds.iter().map(|error| error - centre).collect();
    let standard_error = spread(&deviations) / (folds.len().max(1) as f64).sqrt();
    let relative = match inside > 0.0 {
        true => standard_error / inside,
        false => 0.0,
    };
    (score, score * relative)
}

/// The first candidate, in the order of preference, that is within one
/// standard error of the best; and why. `None` if there is no candidate.
pub fn choose(candidates: &[Candidate]) -> Option<(usize, String)> {
    let by_score = |a: &&Candidate, b: &&Candidate| a.score.total_cmp(&b.score);
    let best = candidates.iter().min_by(by_score)?;
    let good_enough = best.score + best.score_error;
    let preferred = |&at: &usize| (candidates[at].family, at);
    let chosen = (0..candidates.len())
        .filter(|&at| candidates[at].score <= good_enough)
        .min_by_key(preferred)?;
    let family = candidates[chosen].family;
    let why = if family == best.family {
        format!("{family} has the least score")
    } else if family.over_prior() && !best.family.over_prior() {
        format!(
            "{family} is within one standard error of {}, and physics goes on \
             where measurements end",
            best.family
        )
    } else {
        format!(
            "{family} is within one standard error of {}, and simpler",
            best.family
        )
    };
    Some((chosen, why))
}

/// How models were compared. Errors are fractions: 0.02 is 2 %.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validation {
    /// Runs.
    pub rows: usize,
    /// Configurations: their repeats were never on both sides.
    pub groups: usize,
    /// 10, or one a configuration where there are fewer.
    pub folds: usize,
    pub seed: u64,
    /// What was held out where measurements end; `None` if nothing could be.
    pub beyond: Option<Beyond>,
    /// Every family that could be fitted, in the order of preference.
    pub candidates: Vec<Candidate>,
    /// Every family that could not, and why.
    pub failed: Vec<Failed>,
    /// Ways to predict that learn nothing, on the same rows.
    pub baselines: Vec<Baseline>,
    /// Which of the candidates was chosen.
    pub chosen: usize,
    /// Why, in a sentence.
    pub why: String,
    /// The least |correlation| with its target among the features from which
    /// the chosen one's inputs were taken.
    pub threshold: f64,
    /// Rows that the chosen model hardly believes, since the others contradict
    /// them.
    pub outliers: usize,
}

/// A model whose cross-validated error is larger plans hardly better than a guess.
const POOR: f64 = 0.25;

impl Validation {
    /// The cross-validated error of the chosen model, if it is so large that its plans
    /// are hardly better than guesses.
    pub fn poor(&self) -> Option<f64> {
        let error = self.chosen()?.accuracy.mape;
        (error.is_nan() || error > POOR).then_some(error)
    }

    /// The candidate that was chosen. `None` in a damaged file only.
    pub fn chosen(&self) -> Option<&Candidate> {
        self.candidates.get(self.chosen)
    }
}

/// A family of models. Its errors are those of models that were fitted, with
/// hyper-parameters and number of clusters of their own, without the rows on
/// which they were tested.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    pub family: Family,
    /// The hyper-parameters that all rows lead to.
    pub spec: Spec,
    /// The number of clusters that all rows lead to.
    pub clusters: usize,
    /// The features that all rows lead to.
    pub inputs: Vec<String>,
    /// Cross-validated, all folds together.
    pub accuracy: Accuracy,
    /// The mean absolute percentage error of the rows that are believed,
    /// cross-validated: a row that the others contradict says nothing about a
    /// model.
    pub believed: f64,
    /// The standard error of the folds' mean absolute percentage error.
    pub standard_error: f64,
    /// Cross-validated, fold by fold.
    pub folds: Vec<Accuracy>,
    /// Where measurements end, fitted without these rows.
    pub beyond: Option<Accuracy>,
    /// What decided, and its standard error: the geometric mean of `believed` and of the same
    /// error beyond the limit. The first family within one standard error of the least is
    /// chosen.
    pub score: f64,
    pub score_error: f64,
}

/// A family that could not be fitted.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    pub family: Family,
    pub reason: String,
}

/// The reason of a family for which a recipe's deadline left no time.
pub(super) const LATE: &str = "no time was left to fit it";

impl Failed {
    /// Whether it was left out for want of time.
    pub fn is_late(&self) -> bool {
        self.reason == LATE
    }
}

/// A way to predict that learns nothing.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// `naive`: equations 1 and 2 of the PDAWL paper; `roofline`: bytes over bandwidth; `prior`:
    /// the physical model.
    pub name: String,
    /// On all rows.
    pub accuracy: Accuracy,
    /// On the rows that were held out where measurements end.
    pub beyond: Option<Accuracy>,
}

/// A row, predicted by a model that has not seen its configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldOut {
    /// Its place in the table.
    pub row: usize,
    /// Seconds of a step.
    pub measured: f64,
    /// Seconds of a step.
    pub predicted: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regress::Spec;
    use crate::train::Family;
    use crate::validate::Accuracy;

    fn candidate(family: Family, score: f64, score_error: f64) -> Candidate {
        Candidate {
            family,
            spec: Spec::Linear { l2: 1.0 },
            clusters: 4,
            inputs: Vec::new(),
            accuracy: Accuracy::default(),
            believed: 0.0,
            standard_error: 0.0,
            folds: Vec::new(),
            beyond: None,
            score,
            score_error,
        }
    }

    #[test]
    fn the_least_error_wins() {
        let candidates = [
            candidate(Family::PriorLinear, 0.05, 0.01),
            candidate(Family::Linear, 0.02, 0.01),
            candidate(Family::Forest, 0.03, 0.02),
        ];
        let (chosen, why) = choose(&candidates).unwrap();
        assert_eq!(chosen, 1);
        assert_eq!(why, "linear has the least score");
        assert_eq!(choose(&[]), None);
    }

    #[test]
    fn physics_and_simplicity_win_among_equals() {
        let mut candidates = vec![
            candidate(Family::PriorConstant, 0.05, 0.01),
            candidate(Family::PriorLinear, 0.029, 0.01),
            candidate(Family::Gaussian, 0.02, 0.01),
        ];
        let (chosen, why) = choose(&candidates).unwrap();
        assert_eq!(chosen, 1);
        assert!(why.contains("physics"), "{why}");
        candidates[0].score = 0.0205;
        candidates[1] = candidate(Family::PriorForest, 0.02, 0.001);
        candidates.pop();
        let (chosen, why) = choose(&candidates).unwrap();
        assert_eq!(chosen, 0);
        assert!(why.contains("simpler"), "{why}");
    }

    #[test]
    fn errors_inside_and_beyond_count_alike() {
        let folds = [0.01, 0.02, 0.04, 0.9];
        // The folds' median is 0.03, and half of them are within 0.015 of it;
        // of normal deviates half are within 0.6745.
        let expected = 0.015 / 0.674_489_750_196 / 2.0;
        let (inside, error) = score(0.02, &folds, None);
        assert!((inside - 0.02).abs() < 1e-12);
        assert!((error - expected).abs() < 1e-9, "{error}");
        let (both, error) = score(0.02, &folds, Some(0.08));
        assert!((both - 0.04).abs() < 1e-12);
        assert!((error - 2.0 * expected).abs() < 1e-9, "{error}");
        assert_eq!(score(0.0, &[], None), (0.0, 0.0));
    }
}

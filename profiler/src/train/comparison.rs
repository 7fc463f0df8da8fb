//! The comparison of families: each is fitted without each fold, without the rows
//! beyond, and to all rows.

use std::sync::atomic::AtomicBool;

use super::choose::score;
use super::division::{Division, Model};
use super::tune::{Failure, FamilyFit, fit};
use super::validation::{Candidate, Failed, HeldOut};
use super::{Family, Recipe, TrainError, pool};
use crate::regress::spread;
use crate::table::Table;
use crate::validate::accuracy::standard_error;
use crate::validate::{Accuracy, Folds};

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
        let divisions = pool::run(recipe.threads, held.len(), divide, &mut |_, _| {}, stop)?;
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
        let results = pool::run(self.recipe.threads, jobs, job, progress, stop)?;
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

//! From a table to a fitted model, and how good it is.
//!
//! Every [`Family`] of models competes. [`train`] divides the rows into folds
//! ([`crate::validate`]). Within each fold's training rows, and nowhere else, rows that
//! something slowed are found, features clustered and scaled, the number of clusters
//! and the hyper-parameters searched by a cross-validation of their own, and the model
//! is fitted; then it predicts the rows held out. The chosen family is fitted once more
//! to all rows.

mod comparison;
mod division;
mod tune;

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use rayon::ThreadPoolBuilder;
use thiserror::Error;

use crate::fitted::Fitted;
use crate::table::{Row, Table};
use crate::validate::{Accuracy, Beyond, Folds, TooFewGroups};

pub use comparison::{Baseline, Candidate, Failed, HeldOut, Validation};
pub use tune::Family;

/// A model, and what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Trained {
    /// Fitted to all rows. Its spread is that of the rows held out in
    /// cross-validation.
    pub fitted: Fitted,
    pub validation: Validation,
    /// Every row, predicted by a model of the chosen family that was fitted
    /// without its fold.
    pub held_out: Vec<HeldOut>,
}

/// Trains the families of `recipe` on `table` and chooses the best.
///
/// What decides is the mean absolute percentage error, cross-validated and, in
/// equal parts (the geometric mean of both), on the rows of the greatest sizes,
/// held out all at once ([`Beyond`]). Rows that the others contradict, whatever
/// the model, do not count in it: a run that something slowed says nothing
/// about a model. The plain error of all rows is kept beside it.
/// Among candidates within one standard error of the best, one over the prior
/// goes before others, and a simple one before an intricate one.
///
/// `progress` gets the numbers of fits done and of all fits, on the caller's thread.
/// Once `stop` is set no further fit begins.
///
/// Equal tables and recipes without a deadline give equal models, on however many
/// threads.
///
/// # Errors
///
/// [`TrainError`]: what the table lacks, that no family could be fitted, or
/// that it was interrupted.
pub fn train(
    table: &Table,
    recipe: &Recipe,
    progress: &mut dyn FnMut(usize, usize),
    stop: &AtomicBool,
) -> Result<Trained, TrainError> {
    recipe.check()?;
    let groups: Vec<&str> = table.rows.iter().map(|row| row.group.as_str()).collect();
    let count = recipe.folds.min(distinct(&groups)).max(2);
    let folds = Folds::grouped(&groups, count, recipe.seed)?;
    check(table, recipe)?;
    let all: Vec<usize> = (0..table.rows.len()).collect();
    let (beyond, ends) = Beyond::of(table, &all).unzip();
    let comparison = comparison::Comparison::new(table, recipe, &folds, ends.as_deref(), stop)?;
    let (entries, failed) = comparison.run(progress, stop)?;
    let (mut models, candidates): (Vec<_>, Vec<Candidate>) = entries
        .into_iter()
        .map(|entry| ((entry.model, entry.held_out), entry.candidate))
        .unzip();
    let Some((chosen, why)) = comparison::choose(&candidates) else {
        let reason = |failed: Failed| (failed.family, failed.reason);
        return Err(TrainError::AllFailed {
            failed: failed.into_iter().map(reason).collect(),
        });
    };
    let (model, held_out) = models.swap_remove(chosen);
    let validation = Validation {
        rows: table.rows.len(),
        groups: distinct(&groups),
        folds: folds.count(),
        seed: recipe.seed,
        baselines: baselines(table, ends.as_deref()),
        beyond,
        candidates,
        failed,
        chosen,
        why,
        threshold: model.selection.threshold,
        outliers: table.rows.len() - comparison.believed().len(),
    };
    Ok(Trained {
        fitted: model.fitted,
        validation,
        held_out,
    })
}

fn distinct(groups: &[&str]) -> usize {
    let mut groups = groups.to_vec();
    groups.sort_unstable();
    groups.dedup();
    groups.len()
}

/// The table's other ways to predict.
fn baselines(table: &Table, beyond: Option<&[usize]>) -> Vec<Baseline> {
    let baseline = |name: &str, predict: &dyn Fn(&Row) -> f64| {
        let pair = |row: &Row| (row.seconds, predict(row));
        let all: Vec<(f64, f64)> = table.rows.iter().map(pair).collect();
        Baseline {
            name: name.to_owned(),
            accuracy: Accuracy::of(&all),
            beyond: beyond.map(|beyond| {
                let pairs: Vec<(f64, f64)> = beyond.iter().map(|&row| all[row]).collect();
                Accuracy::of(&pairs)
            }),
        }
    };
    let names = table.baselines.iter().enumerate();
    names
        .map(|(place, name)| baseline(name, &|row| row.baselines[place]))
        .collect()
}

/// What is tried, and how it is validated.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// The families that compete, each once.
    pub families: Vec<Family>,
    /// Numbers of clusters, hence of inputs, that are tried; the paper's are 4
    /// to 12. What corrects a prior may have fewer.
    pub clusters: RangeInclusive<usize>,
    /// The least |correlation| of a feature with the time's logarithm; lowered
    /// where too few features pass ([`crate::cluster::Features::select`]). The
    /// paper's is 0.75.
    pub threshold: f64,
    /// The same with what corrects the prior: a prior that is good leaves
    /// nothing that correlates strongly.
    pub correction_threshold: f64,
    /// Folds of the cross-validation, fewer where there are fewer configurations; the
    /// paper's are 10.
    pub folds: usize,
    /// Folds within a fold's training rows, in which hyper-parameters are
    /// searched.
    pub inner_folds: usize,
    /// About the most rows that serve to search the hyper-parameters of a family that
    /// is slow to fit.
    pub search_rows: usize,
    /// Decides the folds and what is random in fits.
    pub seed: u64,
    /// Threads to use; 0 for one a core.
    pub threads: usize,
    /// Families that are not compared by then are left out, except the prior, which
    /// takes no fit. `None` compares all, and makes training reproducible.
    pub deadline: Option<Instant>,
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            families: Family::ALL.to_vec(),
            clusters: 4..=12,
            threshold: 0.75,
            correction_threshold: 0.3,
            folds: 10,
            inner_folds: 3,
            search_rows: 160,
            seed: 1,
            threads: 0,
            deadline: None,
        }
    }
}

impl Recipe {
    /// The least |correlation| of a feature with what the family learns.
    fn threshold_of(&self, family: Family) -> f64 {
        match family.over_prior() {
            true => self.correction_threshold,
            false => self.threshold,
        }
    }

    /// Whether the deadline has passed.
    fn is_late(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn check(&self) -> Result<(), TrainError> {
        let wrong = |what| Err(TrainError::Recipe { what });
        let mut families = self.families.clone();
        families.sort_unstable();
        families.dedup();
        if families.is_empty() || families.len() != self.families.len() {
            return wrong("name each family once, and at least one");
        }
        if self.clusters.is_empty() || *self.clusters.start() == 0 {
            return wrong("let the numbers of clusters begin at 1 or more, and not end before");
        }
        if self.folds < 2 || self.inner_folds < 2 {
            return wrong("validate with at least 2 folds, inner and outer");
        }
        let fraction = |t: f64| (0.0..=1.0).contains(&t);
        if !fraction(self.threshold) || !fraction(self.correction_threshold) {
            return wrong("let the thresholds of correlation be within 0 and 1");
        }
        Ok(())
    }
}

/// Runs jobs 0 to `count` - 1 and returns their results in this order. A job
/// answers `None` if it was interrupted, as all are once `stop` is set.
///
/// The pool is its own: a caller that waits in a pool of several such calls
/// takes no thread from the jobs.
fn run<T: Send>(
    threads: usize,
    count: usize,
    job: impl Fn(usize) -> Option<T> + Sync,
    progress: &mut dyn FnMut(usize, usize),
    stop: &AtomicBool,
) -> Result<Vec<T>, TrainError> {
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| TrainError::Threads {
            reason: error.to_string(),
        })?;
    let (sender, results) = mpsc::channel();
    let mut done: Vec<Option<T>> = (0..count).map(|_| None).collect();
    pool.in_place_scope(|scope| {
        let job = &job;
        for number in 0..count {
            let sender = sender.clone();
            scope.spawn(move |_| {
                let result = if stop.load(Ordering::Relaxed) {
                    None
                } else {
                    job(number)
                };
                // The receiver outlives the scope.
                let _ = sender.send((number, result));
            });
        }
        drop(sender);
        progress(0, count);
        for (finished, (number, result)) in results.iter().enumerate() {
            done[number] = result;
            progress(finished + 1, count);
        }
    });
    done.into_iter()
        .collect::<Option<Vec<T>>>()
        .ok_or(TrainError::Interrupted)
}

/// An error of training. Rows count from 0.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum TrainError {
    #[error(transparent)]
    TooFewGroups(#[from] TooFewGroups),

    #[error(
        "{rows} rows are fewer than the {clusters} clusters of features asked for; \
         profile more, or ask for fewer clusters"
    )]
    TooFewRows { rows: usize, clusters: usize },

    #[error(
        "none of the {features} features varies: there is nothing to learn from; \
         profile other sizes and settings"
    )]
    NoVaryingFeature { features: usize },

    #[error("row {row} (`{group}`) has {found} {what} instead of {expected}")]
    Length {
        row: usize,
        group: String,
        what: &'static str,
        found: usize,
        expected: usize,
    },

    #[error(
        "`{name}` of row {row} (`{group}`) is {value}: \
         it must be a finite number; leave out the row or the feature"
    )]
    NotFinite {
        row: usize,
        group: String,
        name: String,
        value: f64,
    },

    #[error(
        "`{name}` of row {row} (`{group}`) is {value}: \
         seconds must be finite and above 0; leave out the row"
    )]
    NotPositive {
        row: usize,
        group: String,
        name: String,
        value: f64,
    },

    #[error("the recipe cannot be followed: {what}")]
    Recipe { what: &'static str },

    #[error("no family of models could be fitted: {}", reasons(.failed))]
    AllFailed { failed: Vec<(Family, String)> },

    #[error("no threads to train with: {reason}; ask for fewer")]
    Threads { reason: String },

    #[error("training was interrupted; nothing was kept")]
    Interrupted,
}

fn reasons(failed: &[(Family, String)]) -> String {
    let lines: Vec<String> = failed
        .iter()
        .map(|(f, why)| format!("{f}: {why}"))
        .collect();
    lines.join("; ")
}

/// Refuses tables that no model can be fitted to.
fn check(table: &Table, recipe: &Recipe) -> Result<(), TrainError> {
    for (number, row) in table.rows.iter().enumerate() {
        check_row(table, number, row)?;
    }
    let (rows, clusters) = (table.rows.len(), *recipe.clusters.start());
    if rows < clusters {
        return Err(TrainError::TooFewRows { rows, clusters });
    }
    let all: Vec<usize> = (0..rows).collect();
    if table.features(&all).features().is_empty() {
        return Err(TrainError::NoVaryingFeature {
            features: table.names.len(),
        });
    }
    Ok(())
}

fn check_row(table: &Table, number: usize, row: &Row) -> Result<(), TrainError> {
    let length = |what, found, expected| {
        if found == expected {
            return Ok(());
        }
        Err(TrainError::Length {
            row: number,
            group: row.group.clone(),
            what,
            found,
            expected,
        })
    };
    length("values", row.values.len(), table.names.len())?;
    length("baselines", row.baselines.len(), table.baselines.len())?;
    for (name, &value) in table.names.iter().zip(&row.values) {
        if !value.is_finite() {
            return Err(TrainError::NotFinite {
                row: number,
                group: row.group.clone(),
                name: name.clone(),
                value,
            });
        }
    }
    let times = [("seconds", row.seconds), ("prior", row.prior)];
    let baselines = table.baselines.iter().map(String::as_str);
    let baselines = baselines.zip(row.baselines.iter().copied());
    for (name, value) in times.into_iter().chain(baselines) {
        if !(value.is_finite() && value > 0.0) {
            return Err(TrainError::NotPositive {
                row: number,
                group: row.group.clone(),
                name: name.to_owned(),
                value,
            });
        }
    }
    Ok(())
}

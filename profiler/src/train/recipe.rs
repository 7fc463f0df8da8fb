//! The options of a training.

use std::ops::RangeInclusive;
use std::time::Instant;

use super::{Family, TrainError};

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
    pub(super) fn threshold_of(&self, family: Family) -> f64 {
        match family.over_prior() {
            true => self.correction_threshold,
            false => self.threshold,
        }
    }

    /// Whether the deadline has passed.
    pub(super) fn is_late(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }

    pub(super) fn check(&self) -> Result<(), TrainError> {
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

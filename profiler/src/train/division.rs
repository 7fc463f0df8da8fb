//! Divisions of a table's rows: some are learned from, and the others are predicted.

use std::collections::{BTreeMap, BTreeSet};

use super::training::Training;
use super::validation::HeldOut;
use super::{Family, Recipe};
use crate::cluster::{Feature, Selection};
use crate::fitted::Fitted;
use crate::regress::Spec;
use crate::table::Table;
use crate::validate::folds::lot;
use crate::validate::{Beyond, Folds};

/// What is fitted: hyper-parameters, and how many features.
#[derive(Clone, Debug, PartialEq)]
pub struct FitPlan {
    pub spec: Spec,
    /// 0 for a model without inputs.
    pub clusters: usize,
}

/// A fit, and the features that it got.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    pub fitted: Fitted,
    pub selection: Selection,
}

/// A division: whatever is fitted sees the rows of `training` and no other.
pub struct Division<'a> {
    pub training: Training<'a>,
    /// Ascending.
    held_out: Vec<usize>,
    /// Whether these lie beyond the others.
    pub beyond: bool,
}

impl<'a> Division<'a> {
    /// Weighs the rows of a table that are not held out.
    pub fn of(table: &'a Table, held_out: &[usize]) -> Self {
        let kept = (0..table.rows.len()).filter(|row| held_out.binary_search(row).is_err());
        Self {
            training: Training::screened(table, kept.collect()),
            held_out: held_out.to_vec(),
            beyond: false,
        }
    }

    /// Divides the believed rows of `training` again, to search hyper-parameters: some of
    /// them for families that are slow to fit. The error says why that cannot be.
    pub fn within(
        training: &Training<'a>,
        family: Family,
        recipe: &Recipe,
    ) -> Result<Vec<Self>, String> {
        let table = training.table;
        let mut rows = training.believed();
        if family.is_slow() {
            rows = fewer(table, rows, recipe.search_rows, recipe.seed);
        }
        let group = |&row: &usize| table.rows[row].group.as_str();
        let groups: Vec<&str> = rows.iter().map(group).collect();
        let distinct = BTreeSet::from_iter(&groups).len();
        let count = recipe.inner_folds.min(distinct).max(2);
        let folds = Folds::grouped(&groups, count, recipe.seed).map_err(|e| e.to_string())?;
        let divided = |beyond: bool, held_out: Vec<usize>| {
            let in_part = |row| rows.binary_search(&row).is_ok();
            Self {
                beyond,
                training: training
                    .only(|row| in_part(row) && held_out.binary_search(&row).is_err()),
                held_out,
            }
        };
        let held_out = |fold| folds.held_out(fold).into_iter().map(|place| rows[place]);
        let beyond = Some(&rows)
            .filter(|_| family.can_be_tamed())
            .and_then(|rows| Beyond::of(table, rows))
            .map(|(_, held_out)| divided(true, held_out));
        let folds = (0..folds.count()).map(|fold| divided(false, held_out(fold).collect()));
        Ok(folds.chain(beyond).collect())
    }

    /// Fits to the training rows, of whose features `selection` is a part, and predicts
    /// the rows held out. The error says what prevented it.
    pub fn fit(
        &self,
        selection: &Selection,
        family: Family,
        spec: &Spec,
        seed: u64,
    ) -> Result<(Model, Vec<HeldOut>), String> {
        let training = &self.training;
        let name = |input: &Feature| training.table.names[input.index].clone();
        let names: Vec<String> = selection.inputs.iter().map(name).collect();
        let central;
        let weights = match family {
            Family::PriorConstant => {
                central = training.central_weights();
                &central
            }
            _ => &training.weights,
        };
        let priors = family.over_prior().then(|| training.priors());
        let fitted = Fitted::fit(
            spec,
            &names,
            &training.values(&selection.inputs),
            &training.seconds(),
            priors.as_deref(),
            weights,
            seed,
        );
        let model = Model {
            fitted: fitted.map_err(|error| error.to_string())?,
            selection: selection.clone(),
        };
        let rows = self.held_out.iter();
        let held_out: Result<_, String> = rows.map(|&row| self.predict(&model, row)).collect();
        Ok((model, held_out?))
    }

    fn predict(&self, model: &Model, row: usize) -> Result<HeldOut, String> {
        let of = &self.training.table.rows[row];
        let inputs = model.selection.inputs.iter();
        let values: Vec<f64> = inputs.map(|input| of.values[input.index]).collect();
        let predicted = model.fitted.predict(&values, of.prior);
        if !(predicted.is_finite() && predicted > 0.0) {
            return Err(format!("it predicts {predicted} seconds for row {row}"));
        }
        Ok(HeldOut {
            row,
            measured: of.seconds,
            predicted,
        })
    }
}

/// At most `most` rows, ascending: one of each configuration, then a second of
/// each, and so on; of too many configurations, some.
fn fewer(table: &Table, rows: Vec<usize>, most: usize, seed: u64) -> Vec<usize> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let ranked = rows.into_iter().map(|row| {
        let group = table.rows[row].group.as_str();
        let rank = seen.entry(group).or_default();
        *rank += 1;
        (*rank, lot(seed, group), row)
    });
    let mut ranked: Vec<_> = ranked.collect();
    ranked.sort_unstable();
    let mut rows: Vec<usize> = ranked.into_iter().take(most).map(|(.., row)| row).collect();
    rows.sort_unstable();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Row;

    /// Groups of 1, 2, 3 ... rows.
    fn table(groups: usize) -> Table {
        let mut table = Table::default();
        for group in 0..groups {
            for _ in 0..=group {
                table.rows.push(Row {
                    group: format!("{group}"),
                    values: Vec::new(),
                    prior: 1.0,
                    baselines: Vec::new(),
                    seconds: 1.0,
                });
            }
        }
        table
    }

    #[test]
    fn every_configuration_gives_a_row_before_one_gives_two() {
        let table = table(4);
        let all: Vec<usize> = (0..10).collect();
        assert_eq!(fewer(&table, all.clone(), 4, 1), [0, 1, 3, 6]);
        assert_eq!(fewer(&table, all.clone(), 7, 1), [0, 1, 2, 3, 4, 6, 7]);
        assert_eq!(fewer(&table, all.clone(), 99, 1), all);
        let some = fewer(&table, all.clone(), 2, 1);
        assert_eq!(some.len(), 2);
        assert!(some.iter().all(|row| [0, 1, 3, 6].contains(row)));
        assert!((2..20).any(|seed| fewer(&table, all.clone(), 2, seed) != some));
    }
}

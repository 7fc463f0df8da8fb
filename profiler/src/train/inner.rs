//! Folds within the rows that a model may learn from.

use std::collections::{BTreeMap, BTreeSet};

use super::model::Model;
use super::training::Training;
use super::validation::HeldOut;
use super::{Family, Recipe};
use crate::cluster::Features;
use crate::table::Table;
use crate::validate::folds::lot;
use crate::validate::{Beyond, Folds};

/// One of these folds, or what lies beyond the other rows.
pub struct Inner<'a> {
    pub beyond: bool,
    pub training: Training<'a>,
    pub features: Features<'a>,
    held_out: Vec<usize>,
}

impl<'a> Inner<'a> {
    /// Divides the believed rows: some of them for families that are slow to
    /// fit. The error says why that cannot be.
    pub fn folds(
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
        let inner = |beyond: bool, held_out: Vec<usize>| {
            let in_part = |row| rows.binary_search(&row).is_ok();
            let training =
                training.only(|row| in_part(row) && held_out.binary_search(&row).is_err());
            Self {
                beyond,
                features: training.features(family.over_prior()),
                held_out,
                training,
            }
        };
        let held_out = |fold| folds.held_out(fold).into_iter().map(|place| rows[place]);
        let beyond = Some(&rows)
            .filter(|_| family.can_be_tamed())
            .and_then(|rows| Beyond::of(table, rows))
            .map(|(_, held_out)| inner(true, held_out));
        let folds = (0..folds.count()).map(|fold| inner(false, held_out(fold).collect()));
        Ok(folds.chain(beyond).collect())
    }

    /// Predicts the rows held out. The error says that it cannot.
    pub fn predict(&self, model: &Model) -> Result<Vec<HeldOut>, String> {
        let rows = self.held_out.iter();
        rows.map(|&row| model.held_out(self.training.table, row))
            .collect()
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

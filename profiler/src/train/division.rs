//! Divisions of a table's rows: some are learned from, and the others are predicted; and
//! the rows that a model may learn from.

use std::collections::{BTreeMap, BTreeSet};

use ndarray::Array2;

use super::comparison::HeldOut;
use super::{Family, Recipe};
use crate::cluster::{Feature, Features, Selection};
use crate::fitted::{Fitted, Input};
use crate::median;
use crate::regress::{self, Spec, spread};
use crate::table::Table;
use crate::validate::{Beyond, Folds, lot};

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

/// A row of less weight is not believed.
const BELIEVED: f64 = 0.5;
/// Logarithms closer than this differ by rounding.
const ROUNDING: f64 = 1e-9;
/// The most features by which rows are screened.
const SCREEN: usize = 12;

/// Some rows of a table, and how far each is believed, from 0 to 1. Whatever
/// is fitted sees these rows and no other.
#[derive(Clone, Debug)]
pub struct Training<'a> {
    pub table: &'a Table,
    pub rows: Vec<usize>,
    /// One a row of `rows`.
    pub weights: Vec<f64>,
}

impl<'a> Training<'a> {
    /// Rows that are weighed by what the others lead to expect of them: those
    /// that something slowed count little or not at all.
    ///
    /// They are compared by what multiplies the prior, since that varies least.
    pub fn screened(table: &'a Table, rows: Vec<usize>) -> Self {
        let weights = vec![1.0; rows.len()];
        let mut training = Self {
            table,
            rows,
            weights,
        };
        let features = training.features(true);
        let clusters = SCREEN.min(features.distinct());
        if let Some(selection) = features.select(clusters, 0.0) {
            let values = training.values(&selection.inputs);
            let inputs: Vec<Input> = values
                .columns()
                .into_iter()
                .map(|column| Input::learn("", column.iter().copied()))
                .collect();
            let x = Fitted::standardise(&inputs, &values);
            if let Ok(weights) = regress::screen(&x, &training.target(true)) {
                training.weights = weights;
            }
        }
        training
    }

    /// Only those of its rows that `keep` wants.
    pub fn only(&self, keep: impl Fn(usize) -> bool) -> Self {
        let kept = self.rows.iter().zip(&self.weights);
        let (rows, weights) = kept.filter(|(row, _)| keep(**row)).unzip();
        Self {
            table: self.table,
            rows,
            weights,
        }
    }

    /// The rows that are believed.
    pub fn believed(&self) -> Vec<usize> {
        let rows = self.rows.iter().zip(&self.weights);
        let believed = rows.filter(|(_, weight)| **weight >= BELIEVED);
        believed.map(|(row, _)| *row).collect()
    }

    /// The features that vary over the believed rows, compared with the time,
    /// or with what multiplies the prior.
    pub fn features(&self, over_prior: bool) -> Features<'a> {
        self.all_features(over_prior).without(self.table.hidden())
    }

    /// The parts that a sum is made of, as far as they vary.
    pub fn parts(&self) -> Selection {
        self.all_features(true).of_columns(&self.table.parts)
    }

    fn all_features(&self, over_prior: bool) -> Features<'a> {
        let believed = self.only_believed();
        let rows = believed.rows.iter();
        let values: Vec<&[f64]> = rows.map(|&row| &self.table.rows[row].values[..]).collect();
        Features::of(&self.table.names, &values, &believed.target(over_prior))
    }

    /// A row a row of `rows`, a column a feature.
    pub fn values(&self, features: &[Feature]) -> Array2<f64> {
        Array2::from_shape_fn((self.rows.len(), features.len()), |(row, feature)| {
            self.table.rows[self.rows[row]].values[features[feature].index]
        })
    }

    /// Of each row of `rows`.
    pub fn seconds(&self) -> Vec<f64> {
        let rows = self.rows.iter();
        rows.map(|&row| self.table.rows[row].seconds).collect()
    }

    /// Of each row of `rows`.
    pub fn priors(&self) -> Vec<f64> {
        let rows = self.rows.iter();
        rows.map(|&row| self.table.rows[row].prior).collect()
    }

    /// Weights for a model that is one number: a believed row counts if what
    /// multiplies its prior is within three deviations of the median. Where the
    /// prior is wrong for a part of the rows, a mean of all would be wrong for
    /// every row.
    pub fn central_weights(&self) -> Vec<f64> {
        let target = self.target(true);
        let centre = median(self.only_believed().target(true)).unwrap_or(0.0);
        let deviations: Vec<f64> = target.iter().map(|value| value - centre).collect();
        let most = 3.0 * spread(&deviations) + ROUNDING;
        let rows = self.weights.iter().zip(deviations);
        rows.map(|(weight, deviations)| {
            if deviations.abs() <= most {
                *weight
            } else {
                0.0
            }
        })
        .collect()
    }

    fn only_believed(&self) -> Self {
        let rows = self.believed();
        Self {
            table: self.table,
            weights: vec![1.0; rows.len()],
            rows,
        }
    }

    fn target(&self, over_prior: bool) -> Vec<f64> {
        let rows = self.rows.iter().map(|&row| &self.table.rows[row]);
        rows.map(|row| match over_prior {
            true => (row.seconds / row.prior).ln(),
            false => row.seconds.ln(),
        })
        .collect()
    }
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

    /// Rows whose seconds are these times the prior.
    fn training_table(factors: &[f64]) -> Table {
        let row = |(number, factor): (usize, &f64)| {
            let size = 10.0 + number as f64;
            Row {
                group: format!("{}", number / 2),
                values: vec![size, 7.0],
                prior: size,
                baselines: Vec::new(),
                seconds: size * factor,
            }
        };
        Table {
            names: ["size", "constant"].map(String::from).to_vec(),
            baselines: Vec::new(),
            parts: Vec::new(),
            complete: false,
            rows: factors.iter().enumerate().map(row).collect(),
        }
    }

    #[test]
    fn a_slowed_row_is_not_believed_and_does_not_count() {
        let mut factors = vec![1.5; 30];
        factors[11] = 7.5;
        let table = training_table(&factors);
        let training = Training::screened(&table, (0..30).collect());
        let expected: Vec<usize> = (0..30).filter(|row| *row != 11).collect();
        assert_eq!(training.believed(), expected);
        let features = training.features(false);
        assert_eq!(features.features().len(), 1);
        // The other rows' time is the size but for a factor.
        assert!(features.features()[0].correlation > 0.98);
        let part = training.only(|row| row >= 10);
        assert_eq!(part.rows, (10..30).collect::<Vec<_>>());
        assert_eq!(part.weights, training.weights[10..]);
    }

    #[test]
    fn one_number_is_taken_from_the_middle() {
        let mut factors: Vec<f64> = (0..30).map(|i| 1.5 + 0.001 * f64::from(i % 3)).collect();
        for factor in &mut factors[20..27] {
            *factor = 2.0;
        }
        let table = training_table(&factors);
        let training = Training {
            table: &table,
            rows: (0..30).collect(),
            weights: vec![0.7; 30],
        };
        let weights = training.central_weights();
        let expected = |row| if (20..27).contains(&row) { 0.0 } else { 0.7 };
        assert_eq!(weights, (0..30).map(expected).collect::<Vec<_>>());
        factors.fill(3.0);
        let exact = training_table(&factors);
        let training = Training {
            table: &exact,
            ..training
        };
        assert_eq!(training.central_weights(), [0.7; 30]);
    }

    #[test]
    fn nothing_that_varies_leaves_all_believed() {
        let mut table = training_table(&[1.0; 12]);
        table
            .rows
            .iter_mut()
            .for_each(|row| row.values = vec![1.0, 7.0]);
        let training = Training::screened(&table, (0..12).collect());
        assert_eq!(training.weights, [1.0; 12]);
    }
}

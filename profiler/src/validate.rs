//! How well a model predicts what it has not seen: folds that keep the repeats
//! of a configuration together, and figures of the error, also where measurements end.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::median;
use crate::table::Table;

/// How far predictions of positive quantities are off. Errors are fractions
/// of what was measured: 0.02 is 2 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accuracy {
    /// Mean absolute percentage error, of all rows.
    pub mape: f64,
    /// Median absolute percentage error.
    pub median: f64,
    /// The error of the row that is predicted worst.
    pub greatest: f64,
    /// The part of the variation that is explained, of the logarithms as the
    /// paper's models have them (section 3.2); 1 at best, below 0 if the mean
    /// would predict better, and 0 if nothing varies.
    pub r_squared: f64,
}

impl Accuracy {
    /// Of pairs (measured, predicted), all finite and above 0. All figures are
    /// 0 if there is no pair.
    pub fn of(pairs: &[(f64, f64)]) -> Self {
        if pairs.is_empty() {
            return Self::default();
        }
        let mut errors: Vec<f64> = pairs.iter().map(|&(m, p)| ((p - m) / m).abs()).collect();
        errors.sort_by(f64::total_cmp);
        Self {
            mape: mean(&errors),
            median: median(&errors).unwrap_or(0.0),
            greatest: errors[errors.len() - 1],
            r_squared: r_squared(pairs),
        }
    }
}

fn r_squared(pairs: &[(f64, f64)]) -> f64 {
    let measured: Vec<f64> = pairs.iter().map(|(m, _)| m.ln()).collect();
    let centre = mean(&measured);
    let total: f64 = measured.iter().map(|m| (m - centre).powi(2)).sum();
    let residual: f64 = pairs.iter().map(|(m, p)| (m / p).ln().powi(2)).sum();
    if total > 0.0 {
        1.0 - residual / total
    } else {
        0.0
    }
}

/// The mean; 0 of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The standard error of the values' mean; 0 of fewer than two.
pub fn standard_error(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if n < 2.0 {
        return 0.0;
    }
    let centre = mean(values);
    let variance = values.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / (n - 1.0);
    (variance / n).sqrt()
}

// Validation beyond the measurements: the rows of the greatest sizes are held out
// together.
//
// Cross-validation holds out what lies between other rows. A model that is
// best there may be wild just outside, and predictions are wanted there, too.

/// At least this part of the rows is held out, as long as it can be ...
const LEAST: f64 = 0.15;
/// ... without holding out more than this.
const MOST: f64 = 0.4;

/// Rows held out at the end of what was measured.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beyond {
    /// The feature that correlates most with the time.
    pub feature: String,
    /// Its values from here on are held out (up to here, if the time falls as
    /// it rises), in the feature's own unit.
    pub from: f64,
    /// How many rows are held out.
    pub rows: usize,
}

impl Beyond {
    /// Chooses the feature and, among `rows` of the table, whole groups; with
    /// it come the rows that are held out, ascending. `None` if they would be
    /// too many, as where a feature has only two values.
    pub fn of(table: &Table, rows: &[usize]) -> Option<(Self, Vec<usize>)> {
        let features = table.features(rows);
        // Rounding must not decide between a size in units and in bytes.
        let strength = |c: f64| (c.abs() * 1e9).round();
        let feature = features.features().iter().max_by(|a, b| {
            let strengths = strength(a.correlation).total_cmp(&strength(b.correlation));
            strengths.then_with(|| features.name(b).cmp(features.name(a)))
        })?;
        let sign = feature.correlation.signum();
        let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for &row in rows {
            groups.entry(&table.rows[row].group).or_default().push(row);
        }
        let value = |row: &usize| table.rows[*row].values[feature.index];
        let mut ends: Vec<(f64, Vec<usize>)> = groups
            .into_values()
            .map(|rows| {
                let mean = rows.iter().map(value).sum::<f64>() / rows.len() as f64;
                (mean, rows)
            })
            .collect();
        ends.sort_by(|a, b| (sign * b.0).total_cmp(&(sign * a.0)));
        let total = rows.len() as f64;
        let mut from = f64::NAN;
        let mut held = Vec::new();
        for (mean, group) in ends {
            let same = (mean - from).abs() <= 1e-9 * mean.abs();
            if held.len() as f64 >= LEAST * total && !same {
                break;
            }
            from = mean;
            held.extend(group);
        }
        if held.is_empty() || held.len() as f64 > MOST * total {
            return None;
        }
        held.sort_unstable();
        let beyond = Self {
            feature: features.name(feature).to_owned(),
            from,
            rows: held.len(),
        };
        Some((beyond, held))
    }
}

/// Which fold each row is held out in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folds {
    fold: Vec<usize>,
    count: usize,
}

/// Some folds would be empty.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "{groups} configurations cannot be divided into {folds} folds: \
     {needed} more are needed; profile more sizes or settings",
    needed = folds.saturating_sub(*groups)
)]
pub struct TooFewGroups {
    pub groups: usize,
    pub folds: usize,
}

impl Folds {
    /// Divides rows, given by their groups' names, into `count` folds that are
    /// as equal in rows as whole groups allow.
    ///
    /// Groups are shuffled by the seed and their names alone, so that neither
    /// the rows' order nor what they hold decides. The largest groups are
    /// placed first, each in the fold that has fewest rows.
    ///
    /// # Errors
    ///
    /// [`TooFewGroups`] if there are fewer groups than folds.
    pub fn grouped(groups: &[&str], count: usize, seed: u64) -> Result<Self, TooFewGroups> {
        let mut members: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (row, &group) in groups.iter().enumerate() {
            members.entry(group).or_default().push(row);
        }
        if members.len() < count || count == 0 {
            return Err(TooFewGroups {
                groups: members.len(),
                folds: count,
            });
        }
        let mut order: Vec<(&str, Vec<usize>)> = members.into_iter().collect();
        order.sort_by_cached_key(|(name, rows)| (usize::MAX - rows.len(), lot(seed, name)));
        let mut fold = vec![0; groups.len()];
        let mut held = vec![(0, 0); count];
        for (_, rows) in order {
            let least = (0..count).min_by_key(|&f| held[f]).unwrap_or(0);
            held[least].0 += rows.len();
            held[least].1 += 1;
            for row in rows {
                fold[row] = least;
            }
        }
        Ok(Self { fold, count })
    }

    /// How many folds there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The rows that are held out in `fold`, ascending.
    pub fn held_out(&self, fold: usize) -> Vec<usize> {
        (0..self.fold.len())
            .filter(|&row| self.fold[row] == fold)
            .collect()
    }
}

/// A group's place among those of its size: a hash that no release of a
/// library changes.
pub(crate) fn lot(seed: u64, group: &str) -> [u8; 32] {
    Sha256::new()
        .chain_update(seed.to_le_bytes())
        .chain_update(group.as_bytes())
        .finalize()
        .into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::table::Row;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn figures_of_a_small_case() {
        let pairs = [(1.0, 1.1), (2.0, 1.8), (4.0, 4.0), (10.0, 13.0)];
        let accuracy = Accuracy::of(&pairs);
        assert!(close(accuracy.mape, 0.125), "{accuracy:?}");
        assert!(close(accuracy.median, 0.1), "{accuracy:?}");
        assert!(close(accuracy.greatest, 0.3), "{accuracy:?}");
        let mean = (80.0_f64).ln() / 4.0;
        let total: f64 = pairs.iter().map(|(m, _)| (m.ln() - mean).powi(2)).sum();
        let left = (1.1_f64).ln().powi(2) + (0.9_f64).ln().powi(2) + (1.3_f64).ln().powi(2);
        assert!(close(accuracy.r_squared, 1.0 - left / total));
    }

    #[test]
    fn a_tenth_of_disturbed_rows_moves_the_mean_and_not_the_median() {
        let mut pairs: Vec<(f64, f64)> = (1..=20).map(|i| (f64::from(i), f64::from(i))).collect();
        pairs[3].0 *= 5.0;
        pairs[11].0 *= 5.0;
        let accuracy = Accuracy::of(&pairs);
        assert!(close(accuracy.mape, 0.08), "{accuracy:?}");
        assert_eq!(accuracy.median, 0.0);
        assert!(close(accuracy.greatest, 0.8), "{accuracy:?}");
    }

    #[test]
    fn what_does_not_vary_cannot_be_explained() {
        assert_eq!(Accuracy::of(&[(2.0, 2.0), (2.0, 2.0)]).r_squared, 0.0);
        assert_eq!(Accuracy::of(&[]), Accuracy::default());
        assert!(Accuracy::of(&[(1.0, 9.0), (2.0, 9.0)]).r_squared < 0.0);
    }

    #[test]
    fn the_standard_error_of_a_mean() {
        assert!(close(
            standard_error(&[1.0, 2.0, 3.0]),
            (1.0_f64 / 3.0).sqrt()
        ));
        assert_eq!(standard_error(&[5.0]), 0.0);
    }

    fn table(rows: impl IntoIterator<Item = (f64, f64, f64)>) -> Table {
        let row = |(size, workers, seconds): (f64, f64, f64)| Row {
            group: format!("{size} {workers}"),
            values: vec![workers, size * 8.0, size],
            prior: 1.0,
            baselines: Vec::new(),
            seconds,
        };
        Table {
            names: ["workers", "bytes", "a_size"].map(String::from).to_vec(),
            baselines: Vec::new(),
            parts: Vec::new(),
            complete: false,
            rows: rows.into_iter().map(row).collect(),
        }
    }

    fn of(table: &Table) -> Option<(Beyond, Vec<usize>)> {
        Beyond::of(table, &(0..table.rows.len()).collect::<Vec<_>>())
    }

    #[test]
    fn the_greatest_sizes_are_held_out_whole() {
        let sizes = (1..=10).map(f64::from);
        let runs = sizes.flat_map(|size| [1.0, 2.0].map(|w| (size, w, size * size / w)));
        let twice = runs.flat_map(|run| [run, run]);
        let (beyond, rows) = of(&table(twice)).unwrap();
        assert_eq!(beyond.feature, "a_size");
        assert_eq!((beyond.from, beyond.rows), (9.0, 8));
        assert_eq!(rows, (32..40).collect::<Vec<_>>());
    }

    #[test]
    fn only_the_rows_asked_for_count() {
        let runs = (1..=20).map(|size| (f64::from(size), 1.0, f64::from(size)));
        let odd: Vec<usize> = (0..20).step_by(2).collect();
        let (beyond, rows) = Beyond::of(&table(runs), &odd).unwrap();
        assert_eq!((beyond.from, rows), (17.0, vec![16, 18]));
    }

    #[test]
    fn where_the_time_falls_the_least_values_are_held_out() {
        let workers = (1..=10).map(f64::from);
        let (beyond, rows) = of(&table(workers.map(|w| (1.0, w, 1.0 / w)))).unwrap();
        assert_eq!(beyond.feature, "workers");
        assert_eq!((beyond.from, rows), (2.0, vec![0, 1]));
    }

    #[test]
    fn two_sizes_have_nothing_beyond() {
        let runs = (0..10).map(|i| (f64::from(1 + i % 2), 1.0, f64::from(1 + i % 2)));
        assert_eq!(of(&table(runs)), None);
        assert_eq!(of(&Table::default()), None);
    }

    fn names(sizes: &[usize]) -> Vec<String> {
        let group = |(g, &size): (usize, &usize)| vec![format!("group {g}"); size];
        sizes.iter().enumerate().flat_map(group).collect()
    }

    fn folds(names: &[String], count: usize, seed: u64) -> Result<Folds, TooFewGroups> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Folds::grouped(&names, count, seed)
    }

    proptest! {
        #[test]
        fn groups_stay_whole_and_folds_balanced(
            sizes in proptest::collection::vec(1_usize..7, 3..40),
            count in 1_usize..11,
            seed in any::<u64>(),
        ) {
            let names = names(&sizes);
            prop_assume!(sizes.len() >= count);
            let folds = folds(&names, count, seed).unwrap();
            for (a, name) in names.iter().enumerate() {
                for (b, other) in names.iter().enumerate().skip(a) {
                    if name == other {
                        prop_assert_eq!(folds.fold[a], folds.fold[b]);
                    }
                }
            }
            let held: Vec<usize> = (0..count).map(|f| folds.held_out(f).len()).collect();
            prop_assert_eq!(held.iter().sum::<usize>(), names.len());
            let (least, most) = (held.iter().min().unwrap(), held.iter().max().unwrap());
            prop_assert!(*least > 0);
            // One more group in a fold than in another, at most.
            prop_assert!(most - least <= *sizes.iter().max().unwrap(), "{:?}", held);
        }

        #[test]
        fn the_order_of_rows_does_not_matter(
            sizes in proptest::collection::vec(1_usize..5, 6..20),
            seed in any::<u64>(),
        ) {
            let forwards = names(&sizes);
            let mut backwards = forwards.clone();
            backwards.reverse();
            let mut mirrored = folds(&backwards, 5, seed).unwrap().fold;
            mirrored.reverse();
            prop_assert_eq!(folds(&forwards, 5, seed).unwrap().fold, mirrored);
        }
    }

    #[test]
    fn the_seed_shuffles() {
        let names = names(&[3; 20]);
        let of = |seed| folds(&names, 10, seed).unwrap();
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        assert_eq!(of(1).count(), 10);
        assert!((0..10).all(|f| of(1).held_out(f).len() == 6));
    }

    #[test]
    fn too_few_groups_say_how_many_are_missing() {
        let names = names(&[4; 7]);
        let error = folds(&names, 10, 0).unwrap_err();
        assert_eq!((error.groups, error.folds), (7, 10));
        let text = error.to_string();
        assert!(text.contains("7 configurations"), "{text}");
        assert!(text.contains("3 more are needed"), "{text}");
        assert!(folds(&[], 0, 0).is_err());
    }
}

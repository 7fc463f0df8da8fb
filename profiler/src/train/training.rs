//! The rows that a model may learn from.

use ndarray::Array2;

use crate::cluster::{Feature, Features};
use crate::fitted::{Fitted, Input};
use crate::regress;
use crate::table::Table;

/// A row of less weight is not believed.
const BELIEVED: f64 = 0.5;
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

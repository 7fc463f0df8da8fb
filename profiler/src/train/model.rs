//! One fit: features are clustered and scaled, and a regression is fitted, all
//! on the same rows.

use super::Family;
use super::training::Training;
use super::validation::HeldOut;
use crate::cluster::{Feature, Selection};
use crate::fitted::Fitted;
use crate::regress::Spec;
use crate::table::Table;

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

impl Model {
    /// Fits to `training`, of whose features `selection` is a part. The error
    /// says what prevented it.
    pub fn fit(
        training: &Training,
        selection: &Selection,
        family: Family,
        spec: &Spec,
        seed: u64,
    ) -> Result<Self, String> {
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
            Some(weights),
            seed,
        )
        .map_err(|error| error.to_string())?;
        Ok(Self {
            fitted,
            selection: selection.clone(),
        })
    }

    /// Predicts a row that it was not fitted to. The error says that it cannot.
    pub fn held_out(&self, table: &Table, row: usize) -> Result<HeldOut, String> {
        let of = &table.rows[row];
        let inputs = self.selection.inputs.iter();
        let values: Vec<f64> = inputs.map(|input| of.values[input.index]).collect();
        let predicted = self.fitted.predict(&values, of.prior);
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

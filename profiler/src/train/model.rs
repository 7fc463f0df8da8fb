//! One fit: features are clustered and scaled, and a regression is fitted, all
//! on the same rows.

use super::Family;
use super::training::Training;
use super::validation::HeldOut;
use crate::cluster::{Dendrogram, Features};
use crate::fitted::Fitted;
use crate::regress::Spec;
use crate::table::Table;

/// What is fitted: hyper-parameters, and how many features.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub spec: Spec,
    /// 0 for a model without inputs.
    pub clusters: usize,
}

/// A fit, and what it knows of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    pub fitted: Fitted,
    /// The inputs' places in a row's values.
    places: Vec<usize>,
    pub dendrogram: Dendrogram,
    /// The least |correlation| of what was clustered.
    pub threshold: f64,
}

impl Model {
    /// Fits to `training`, whose features are `features`. The error says what
    /// prevented it.
    pub fn fit(
        training: &Training,
        features: &Features,
        family: Family,
        plan: &Plan,
        threshold: f64,
        seed: u64,
    ) -> Result<Self, String> {
        let selection = features
            .select(plan.clusters, threshold)
            .ok_or_else(|| format!("there are no {} features that differ", plan.clusters))?;
        let name = |feature| features.name(feature).to_owned();
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
            &plan.spec,
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
            places: selection.inputs.iter().map(|input| input.index).collect(),
            dendrogram: selection.dendrogram,
            threshold: selection.threshold,
        })
    }

    /// Predicts a row that it was not fitted to. The error says that it cannot.
    pub fn held_out(&self, table: &Table, row: usize) -> Result<HeldOut, String> {
        let of = &table.rows[row];
        let values: Vec<f64> = self.places.iter().map(|&place| of.values[place]).collect();
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

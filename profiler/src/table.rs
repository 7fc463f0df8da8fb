//! The table that a model is trained on: features as numbers, and the seconds to
//! predict.

use crate::cluster::Features;

/// Rows of equal features.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The features' names, in the order of [`Row::values`].
    pub names: Vec<String>,
    /// The names of other ways to predict, in the order of [`Row::baselines`];
    /// a model must beat them.
    pub baselines: Vec<String>,
    /// Places of those features that are parts of the prior, or that it leaves
    /// out, each at least 0 and over the whole prior.
    pub parts: Vec<usize>,
    /// Whether these parts make up the whole by themselves. Then no other model
    /// than their sum is made of them.
    pub complete: bool,
    pub rows: Vec<Row>,
}

impl Table {
    /// Places of the features that only a sum of parts sees.
    pub fn hidden(&self) -> &[usize] {
        match self.complete {
            true => &self.parts,
            false => &[],
        }
    }

    /// The features that vary over these rows and that any model may see, compared
    /// with the logarithm of the time.
    pub fn features(&self, rows: &[usize]) -> Features<'_> {
        let rows = || rows.iter().map(|row| &self.rows[*row]);
        let values: Vec<&[f64]> = rows().map(|row| &row.values[..]).collect();
        let times: Vec<f64> = rows().map(|row| row.seconds.ln()).collect();
        Features::of(&self.names, &values, &times).without(self.hidden())
    }
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its configuration, say: rows of one group never stand on both sides of a
    /// validation.
    pub group: String,
    pub values: Vec<f64>,
    /// Seconds of a step that physics lets expect, above 0: what a learned
    /// correction multiplies.
    pub prior: f64,
    /// Seconds of a step by each of the other ways.
    pub baselines: Vec<f64>,
    /// Seconds of a step as measured, above 0.
    pub seconds: f64,
}

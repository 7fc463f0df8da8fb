//! Charts of models as SVG: which features are alike, how good predictions
//! are, and over which sizes.
//!
//! Every chart takes plain data and returns the SVG's text; equal data gives
//! equal text. Whoever calls writes the title, which must say so when times
//! are simulated.
//!
//! * [`dendrogram`], [`predicted_against_measured`] and [`error_over_size`] are
//!   the charts.
//! * `axis` chooses scales and ticks, `figure` and `label` are the sheet, its
//!   title and legend; `plotters` draws.

mod axis;
mod dendrogram;
mod error_over_size;
mod figure;
mod label;
mod predicted;
#[cfg(test)]
mod tests;
mod tree;

use thiserror::Error;

pub use dendrogram::dendrogram;
pub use error_over_size::{SizeError, error_over_size};
pub use predicted::predicted_against_measured;

/// Points that belong together: a candidate's, or a device's. They share a
/// colour, a mark and a line of the legend.
#[derive(Clone, Debug, PartialEq)]
pub struct Series<P> {
    pub name: String,
    pub points: Vec<P>,
}

/// Why there is no chart.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PlotError {
    #[error("there is nothing to draw: {missing}")]
    Empty { missing: &'static str },

    #[error("the dendrogram is damaged: {why}; train the model again")]
    Tree { why: String },

    #[error("the chart cannot be drawn: {why}")]
    Draw { why: String },
}

//! How well a model predicts what it has not seen: folds that keep the repeats
//! of a configuration together ([`folds`]), and figures of the error
//! ([`accuracy`]).

pub mod accuracy;
pub mod folds;

pub use accuracy::Accuracy;
pub use folds::{Folds, TooFewGroups};

//! How well a model predicts what it has not seen: folds that keep the repeats
//! of a configuration together ([`folds`]), and figures of the error
//! ([`accuracy`]), also where measurements end ([`beyond`]).

pub mod accuracy;
pub mod beyond;
pub mod folds;

pub use accuracy::Accuracy;
pub use beyond::Beyond;
pub use folds::{Folds, TooFewGroups};

//! What a correction can depend on.

use crate::Fitted;

/// A model's inputs as a correction sees them: standardised, and kept within
/// the range of the training. `values` are as [`Fitted::predict`] wants them.
pub fn terms(fitted: &Fitted, values: &[f64]) -> Vec<f64> {
    (fitted.inputs.iter().zip(values))
        .map(|(input, value)| input.standardise(input.limit(*value)))
        .collect()
}

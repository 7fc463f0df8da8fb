//! The errors of a fit.

use thiserror::Error;

/// Why [`fit`](super::fit) gave no regressor.
///
/// Rows and columns count from 0; a caller that knows names adds them.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum FitError {
    #[error("no features to fit to: keep at least one")]
    NoFeatures,
    #[error("{rows} rows are too few for {family}, which needs {needed}: profile more")]
    TooFewRows {
        family: &'static str,
        rows: usize,
        needed: usize,
    },
    #[error("{found} {what} instead of {expected}")]
    Lengths {
        what: &'static str,
        found: usize,
        expected: usize,
    },
    #[error("column {column} of row {row} is not a finite number: leave the row or the column out")]
    Value { row: usize, column: usize },
    #[error("the target of row {row} is not a finite number: leave the row out")]
    Target { row: usize },
    #[error("the weight of row {row} is not a finite number of at least 0")]
    Weight { row: usize },
    #[error("every row has the same target: there is nothing to learn")]
    ConstantTarget,
    #[error("{family} with {name} = {value}: it must be {allowed}")]
    Parameter {
        family: &'static str,
        name: &'static str,
        value: f64,
        allowed: &'static str,
    },
    #[error("{family} did not converge: try a smaller c or a larger epsilon")]
    NotConverged { family: &'static str },
    #[error("{family} could not be solved: {reason}")]
    Solver {
        family: &'static str,
        reason: String,
    },
}

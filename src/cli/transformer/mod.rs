//! `pdawl run transformer` and `pdawl bench transformer`.
//!
//! [`stage`] opens the devices or the simulator, `point` lets policies take
//! turns on one size, [`bench`] goes through the paper's experiments.

pub mod bench;
mod point;
mod stage;

use pdawl::experiment::ExperimentError;
use pdawl::workload::transformer::{MOST_HEADS, MOST_ROWS};

use super::failure::{Failure, LOST, refused};
use super::whole::whole;
use pdawl::engine::graph::GraphRunError;

/// A number of heads.
fn heads(text: &str) -> Result<u32, String> {
    whole(1..=MOST_HEADS)(text)
}

/// Rows and columns of a matrix.
fn beta(text: &str) -> Result<u32, String> {
    whole(1..=MOST_ROWS)(text)
}

/// A library's error as the user's failure.
fn failure(error: ExperimentError) -> Failure {
    match error {
        ExperimentError::Run(GraphRunError::Runtime(error)) => refused(error),
        ExperimentError::Run(error @ GraphRunError::Lost { .. }) => Failure::failed(error, LOST),
        other => Failure::of(other),
    }
}

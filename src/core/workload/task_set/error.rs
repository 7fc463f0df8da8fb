//! Errors of task sets.

use thiserror::Error;

use crate::graph::{GraphError, MOST_TASKS};

/// What is wrong with a task set.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TaskSetError {
    #[error("{what} are {given}; take 1 to {most}")]
    Range {
        what: &'static str,
        given: u32,
        most: u32,
    },

    #[error("the removed part of the tasks is {0}; take 0 to less than 1")]
    Removed(f64),

    #[error("the set has {given} tasks; take sizes with 1 to {MOST_TASKS}")]
    Count { given: u64 },

    #[error("factorisations have no precision {0}; take f32 or f64")]
    Precision(&'static str),

    #[error("real arithmetic needs tasks with results; {0}")]
    NotReal(&'static str),

    #[error(transparent)]
    Graph(#[from] GraphError),
}

/// Checks that a size is 1 to `most`.
pub(super) fn within(what: &'static str, given: u32, most: u32) -> Result<(), TaskSetError> {
    match (1..=most).contains(&given) {
        true => Ok(()),
        false => Err(TaskSetError::Range { what, given, most }),
    }
}

//! Policies on a transformer, so that they can take turns: the experiments of
//! the PySchedCL paper (section 5).
//!
//! [`Bout`] holds one transformer ready for all of them on a runtime: its heads
//! as components (an `arena`), for clustering and adaptive; every kernel as a
//! component, for eager and heft; and its kernels' measured times. Nothing here
//! reads a clock or prints; figures are those of the outcomes.

mod arena;
mod bout;

#[cfg(test)]
mod tests;

use thiserror::Error;

pub use bout::{Bout, Contender};

use crate::engine::graph::GraphRunError;
use crate::runtime::RuntimeError;
use crate::workload::transformer::TransformerError;

/// Why a transformer could not be run.
#[derive(Debug, Error)]
pub enum ExperimentError {
    #[error(transparent)]
    Transformer(#[from] TransformerError),

    #[error(transparent)]
    Run(#[from] GraphRunError),
}

impl From<RuntimeError> for ExperimentError {
    fn from(error: RuntimeError) -> Self {
        Self::Run(error.into())
    }
}

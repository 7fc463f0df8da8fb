//! The experiments of the PySchedCL paper (section 5), a transformer under every
//! policy, [`tasks`] that share data under policies for small memories, the results of
//! [`dense`] operations, and workloads over nodes on [`one_machine`].
//!
//! * A [`Division`] is a graph divided into components, ready on a runtime, with
//!   what policies know of it.
//! * A [`Comparison`] runs one transformer under any [`CandidatePolicy`]: policies that do not
//!   place kernels one by one place heads.
//! * [`Point::measure`] measures one size: it searches for the best clustering, then
//!   the candidates take turns.
//!
//! Nothing here prints, and the figures are those of the outcomes. Only the real time
//! that policies for [`tasks`] take to decide is measured here.

mod comparison;
pub mod dense;
mod division;
pub mod one_machine;
mod point;
pub mod tasks;

#[cfg(test)]
mod tests;

use thiserror::Error;

pub use comparison::{CandidatePolicy, Comparison};
pub use division::Division;
pub use point::{Candidate, Point, PointOptions};

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

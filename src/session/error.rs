//! Why a session, or one of its runs, is not possible.

use thiserror::Error as ThisError;

use crate::balance::StrategyError;
use crate::engine::corun::CorunError;
use crate::engine::graph::GraphRunError;
use crate::graph::GraphError;
use crate::machine::MachineError;
use crate::matrix::CsrError;
use crate::policy::{MapError, PolicyNameError};
use crate::runtime::RuntimeError;
use crate::runtime::select::SelectionError;
use crate::workload::spmv::SpmvError;
use crate::workload::stencil::StencilError;

/// Why a session, or one of its runs, is not possible. Its text names the thing and what to do.
#[derive(Debug, ThisError)]
pub enum Error {
    /// A call with wrong arguments.
    #[error("{0}")]
    Arguments(String),
    #[error(transparent)]
    Devices(#[from] SelectionError),
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    #[error(transparent)]
    Strategy(#[from] StrategyError),
    #[error(transparent)]
    Matrix(#[from] CsrError),
    #[error(transparent)]
    Product(#[from] SpmvError),
    #[error(transparent)]
    Stencil(#[from] StencilError),
    #[error(transparent)]
    Corun(#[from] CorunError),
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error(transparent)]
    Policy(#[from] PolicyNameError),
    #[error(transparent)]
    Map(#[from] MapError),
    #[error(transparent)]
    GraphRun(#[from] GraphRunError),
    /// The stop of the session was set before the run had a result.
    #[error("the run was stopped before it had a result")]
    Stopped,
}

//! Why a graph cannot run or go on.

use thiserror::Error;

use crate::graph::GraphError;
use crate::policy::MapError;
use crate::runtime::RuntimeError;

/// An error of the graph engine.
#[derive(Debug, Error)]
pub enum GraphRunError {
    #[error(transparent)]
    Runtime(#[from] RuntimeError),

    #[error(transparent)]
    Graph(#[from] GraphError),

    #[error(transparent)]
    Map(#[from] MapError),

    #[error("there is no device to run on")]
    NoDevice,

    #[error(
        "{device}: the graph needs {needed} bytes of its memory, and it has {has}; put fewer \
         components on it, or choose a smaller size"
    )]
    Memory {
        device: String,
        needed: u64,
        has: u64,
    },

    #[error("component {component} ({kernels}) can run on no device that is left; lost: {lost}")]
    Lost {
        component: usize,
        kernels: String,
        lost: String,
    },

    #[error("policy `{policy}`: {what} (a fault of the policy)")]
    Policy { policy: &'static str, what: String },
}

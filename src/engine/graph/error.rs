//! Why a graph cannot be run, or not to its end.

use thiserror::Error;

use crate::policy::MapError;
use crate::quantity::Bytes;
use crate::runtime::RuntimeError;
use pdawl_core::graph::GraphError;

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
        "{device}: component {component} ({kernels}) needs {} of its memory at once, and has \
         {}; divide its kernels among more components, choose a smaller size, or raise \
         --gpu-memory",
        Bytes(*needed),
        Bytes(*has)
    )]
    Memory {
        device: String,
        component: usize,
        kernels: String,
        needed: u64,
        has: u64,
    },

    #[error(
        "component {component} ({kernels}) can run on none of the devices that are left; lost: {lost}"
    )]
    Lost {
        component: usize,
        kernels: String,
        lost: String,
    },

    #[error(
        "{codelet} can be computed on none of the devices, {devices}: {why}; other devices, or \
         another size"
    )]
    Unable {
        codelet: String,
        devices: String,
        why: &'static str,
    },

    #[error("`{0}` was lost with a device, and what made it is forgotten")]
    Gone(String),

    #[error("policy `{policy}`: {what} (a bug in the policy)")]
    Policy { policy: &'static str, what: String },
}

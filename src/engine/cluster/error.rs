//! Why a run over a cluster cannot begin or go on.

use thiserror::Error;

use crate::cluster::space::{Block, SpaceId};
use crate::runtime::RuntimeError;

/// An error of a run over a cluster.
#[derive(Debug, Error)]
pub enum ClusterError {
    #[error(transparent)]
    Runtime(#[from] RuntimeError),

    #[error(transparent)]
    Wire(#[from] crate::cluster::wire::WireError),

    #[error(
        "rows {}..{} and columns {}..{} of space {} have no contents; a task must write a \
         block before another reads it",
        block.rows.start, block.rows.end, block.columns.start, block.columns.end, space.0
    )]
    Missing { space: SpaceId, block: Block },

    #[error("{0}")]
    Stopped(String),

    #[error("{why} ({node} was lost)")]
    Lost { node: String, why: String },

    #[error("{from} sent what is no message of this program; start the same program everywhere")]
    NoMessage { from: String },

    #[error("subtask {subtask} of `{task}` cannot be computed: {why}; no device of {node} is left")]
    NoDevice {
        task: String,
        subtask: u64,
        node: String,
        why: String,
    },

    #[error("interrupted")]
    Interrupted,
}

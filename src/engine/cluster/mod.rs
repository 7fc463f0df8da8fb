//! Runs workloads over the nodes of a cluster.
//!
//! A [`Node`] is one process of the cluster. It drives a wire and a runtime together, in one
//! loop: the protocol ([`pdawl_core::cluster::protocol`]) decides, `node` and `act` tell it what
//! happened and do what it answers. `store` has the node's blocks of spaces, as data of an
//! open graph (`crate::graph`), and `subtasks` makes kernels of it, several of one
//! subtask (`parts`) where that pays; threads of
//! `copying` copy what travels, `answers` are for other nodes, and bring the result to the first one, `encode` makes bytes of messages, `run` takes a workload from its
//! spaces to its report, `common` gives all nodes what one has computed, and says
//! how its tasks go on, `alone` computes on one machine without messages, `traced` notes what a trace shows, `turn` is what it does again and again. `before` ends a run before it begins. [`measure`] measures a cluster for its cluster file, and [`simulate`] drives
//! the same protocol in a simulated cluster.

mod act;
mod alone;
mod answers;
mod bands;
mod before;
mod common;
mod copying;
mod encode;
mod expected;
pub mod measure;
mod node;
mod parts;
mod run;
pub mod simulate;
mod store;
mod subtasks;
mod traced;
mod turn;

pub use alone::{Alone, Finished};
pub use before::{abandon, build_agreement, heard, the_end};
pub use expected::expected;
pub use node::{Node, Options};
pub use run::{Control, Sink};
pub use subtasks::DEPTH;

use pdawl_core::cluster::NodeId;
use pdawl_core::cluster::space::{Block, SpaceId};
use pdawl_core::cluster::task::TaskError;
use pdawl_core::cluster::wire::WireError;
use pdawl_core::cluster::wire::agreement::Difference;
use thiserror::Error;

use crate::corun::CorunError;
use crate::graph::GraphRunError;
use crate::runtime::RuntimeError;
use crate::workload::cluster::FillError;
use crate::workload::cluster::graph::WorkloadGraphError;
use crate::workload::cluster::program::ProgramError;

/// An error of a run over a cluster.
#[derive(Debug, Error)]
pub enum ClusterError {
    #[error(transparent)]
    Runtime(#[from] RuntimeError),

    #[error(transparent)]
    Wire(#[from] WireError),

    #[error(
        "rows {}..{} and columns {}..{} of space {} have no contents; a task must write a \
         block before another reads it",
        block.rows.start, block.rows.end, block.columns.start, block.columns.end, space.0
    )]
    Missing { space: SpaceId, block: Block },

    #[error(transparent)]
    Task(#[from] TaskError),

    #[error(transparent)]
    Graph(#[from] GraphRunError),

    #[error(transparent)]
    Corun(#[from] CorunError),

    #[error(transparent)]
    Workload(#[from] WorkloadGraphError),

    #[error(transparent)]
    Input(#[from] FillError),

    #[error("the result cannot be written: {0}")]
    Output(#[from] std::io::Error),

    /// The workload has no result, such as the factors of a singular matrix.
    #[error("{0}")]
    Refused(String),

    #[error("{0}")]
    Stopped(String),

    #[error("there is no memory for a message of {bytes} bytes; use more nodes or a smaller size")]
    NoMemory { bytes: u64 },

    #[error("node 0 was lost, which coordinates the others; start the program again")]
    FirstLost,

    #[error(
        "{me} (this one) was not heard for too long, and {by} takes it for lost; it writes no \
         result; start the program again if the others have ended, too"
    )]
    Excluded { me: NodeId, by: NodeId },

    #[error(
        "the programs differ: {difference} at {node}; let all nodes run the same operations and \
         tasks, with the same arguments and in the same order"
    )]
    Unlike {
        difference: Difference,
        node: NodeId,
    },

    #[error("{from} sent what is no message of this program; start the same program everywhere")]
    NoMessage { from: String },

    /// A program of a user that cannot run.
    #[error(transparent)]
    Program(#[from] ProgramError),

    #[error(
        "the spaces of {program} need {needed} of this node's memory, and it has {has}; smaller \
         spaces, or more nodes"
    )]
    Memory {
        program: String,
        needed: String,
        has: String,
    },

    #[error("the file of this program cannot be read, so nodes cannot compare theirs: {0}")]
    Executable(std::io::Error),

    #[error(
        "the system cannot start a thread for a node: {0}; raise the limit of processes \
         (`ulimit -u`), or end some"
    )]
    Thread(std::io::Error),

    #[error("a message cannot be written: {0}")]
    Message(#[from] serde_json::Error),

    #[error("interrupted")]
    Interrupted,
}

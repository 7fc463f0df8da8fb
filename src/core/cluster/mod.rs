//! Tasks over the nodes of a cluster, after Unicorn (Beri, Bansal and Kumar): shared
//! address spaces, and tasks of subtasks that read and write blocks of them.
//!
//! One process runs on each node, the same program on all. Spaces and tasks therefore get
//! equal ids everywhere, and every node can compute what any subtask reads and writes.
//!
//! * [`space`] has spaces, blocks of them, and the directory that knows which node has
//!   which block.
//! * [`task`] is what a task asks of a cluster.
//! * [`protocol`] is what a node does when a message arrives or a device is done: a state
//!   machine without clock, wire and devices.
//! * [`wire`] carries messages between the processes.

pub mod info;
pub mod protocol;
pub mod record;
pub mod space;
pub mod task;
pub mod wire;

use serde::{Deserialize, Serialize};
use std::fmt;

/// A node, by its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The node that coordinates the others.
    pub const FIRST: Self = Self(0);

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

//! What a node does, as a state machine: it learns what arrived, what its devices did and
//! the time, and answers what to send and what to start. It reads no clock and knows no
//! wire and no device, so the same code runs on real nodes and in a simulated cluster.
//!
//! Node 0 coordinates: it has the policy that spreads subtasks over the nodes
//! ([`crate::spread`]). Every node has its own queue of subtasks, fetches what the next
//! ones read while others compute, and gives them to its devices.

mod combine;
mod coordinator;
mod copies;
mod devices;
mod fetch;
mod message;
mod node;
mod queue;
mod work;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use message::{Message, Results};
pub use node::{NodeMachine, Settings};
pub use work::Counts;

use super::NodeId;
use super::task::TaskId;
use super::task::chain::Source;
use crate::time::Nanos;

/// Of the messages and what nodes do with them. It grows with each change after which nodes
/// no longer understand older ones.
pub const VERSION: u32 = 8;

/// Numbers a node's own requests for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RequestId(pub u64);

/// A device of a node, by its place in the node's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceIndex(pub u32);

/// What happened at a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A message of another node, or of this one.
    Message { from: NodeId, message: Message },
    /// What a request asked for has arrived and is kept for the task.
    Fetched { request: RequestId },
    /// A device has ended a subtask.
    Done {
        device: DeviceIndex,
        /// A device may end a subtask of an earlier task, which could not be stopped.
        task: TaskId,
        subtask: u64,
        /// From its first command's start to its last one's end.
        took: Nanos,
    },
    /// A device has ended a subtask without a result, as the subtask reads more than was known:
    /// [`Task::reads`](super::task::Task::reads) says it from now on at this node.
    Lacked {
        device: DeviceIndex,
        task: TaskId,
        subtask: u64,
    },
    /// A device has failed for good. The node goes on with the others.
    DeviceLost { device: DeviceIndex, why: String },
    /// Data of tasks that have ended are gone, and nobody here makes them again.
    Gone { why: String },
    /// The results of a reduction that another node sent are combined with this node's.
    Combined,
    /// A node is gone.
    NodeLost { node: NodeId },
    /// A node takes this one for lost.
    Excluded { by: NodeId },
    /// The time that [`Action::WakeAt`] asked for.
    Woken,
}

/// Why tasks begin anew.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// A node was lost, with data that nobody has any longer.
    Lost(NodeId),
    /// The coordinator has found a mistake of its own, or a node has lost data of tasks that
    /// have ended.
    Mistake(String),
}

/// What a node's driver must do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Send a message to a node. Messages to one node arrive in order.
    Send { to: NodeId, message: Message },
    /// Answer a request of a node with its parts' bytes, a part after the other. The node
    /// has them, or has fetched them, or they have their first contents. What is not here any
    /// longer was overwritten, and nobody waits for it.
    Serve {
        to: NodeId,
        request: RequestId,
        sources: Vec<Source>,
    },
    /// Start a subtask, on this device or another one: all that it reads is here. Its result
    /// is held when it has ended, until [`Action::Keep`] or [`Action::Discard`]. After the
    /// loss of a device a subtask may be started that runs, or has ended; its end is reported
    /// then, too.
    Start { device: DeviceIndex, subtask: u64 },
    /// Stop a subtask, if that can be done; its result is not wanted. It still ends with
    /// [`Event::Done`].
    Abort { device: DeviceIndex, subtask: u64 },
    /// Keep the result of a subtask, of which other subtasks of a chain may be asked for at
    /// once, or, in a task that reduces, combine it with the node's others.
    Keep { subtask: u64 },
    /// Forget the result of a subtask, which another node has. It may have been kept, but
    /// not in a task that reduces.
    Discard { subtask: u64 },
    /// Forget what a request fetched. What is not released is forgotten at the chain's end.
    Release { request: RequestId },
    /// Send the node's combined results to a node, which combines them with its own. All
    /// that was to be kept or combined before is in them.
    SendCombined { to: NodeId },
    /// Ask again at this time.
    WakeAt(Nanos),
    /// The chain's task of this index has ended, as those before it have. The node that has the
    /// result of each of its subtasks; of a task that reduces, one node has them all. What it
    /// has overwritten is not needed any longer.
    Ended { index: usize, results: Results },
    /// The tasks begin anew, and what devices still run is not wanted.
    Restart { cause: Cause },
    /// A node was lost; its data with first contents go to `successor`, and the task goes on.
    Lost { node: NodeId, successor: NodeId },
    /// The run cannot go on.
    Fail { why: String },
    /// The run cannot go on, as nobody coordinates it.
    FirstLost,
    /// This node takes part no more: it was taken for lost by the coordinator, or is the
    /// coordinator and another node has ended since it took it for lost.
    Excluded { by: NodeId },
}

//! What a node does, as a state machine: it learns what arrived, what its devices did and
//! the time, and answers what to send and what to start. It reads no clock and knows no
//! wire and no device, so the same code runs on real nodes and in a simulated cluster.
//!
//! Node 0 coordinates: it has the policy that spreads subtasks over the nodes
//! ([`crate::spread`]). Every node has its own queue of subtasks, fetches what the next
//! ones read while others compute, and gives them to its devices.

mod coordinator;
mod copies;
mod devices;
mod fetch;
mod node;
mod work;

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use node::NodeMachine;
pub use work::Counts;

use super::NodeId;
use super::task::TaskId;
use super::task::chain::Source;
use crate::balance::bands::Pace;
use crate::cluster::info::{NodeInfo, Nodes};
use crate::cluster::record::NodeRecord;
use crate::cluster::space::SpaceBlock;
use crate::cluster::wire::agreement::Agreement;
use crate::spread::{Network, Next};
use crate::time::Nanos;

/// How a node works.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Blocks that are on their way to the node at once, for subtasks that it has been given:
    /// more would share its link with what is needed first. With 0, a device has one subtask
    /// at a time, and its data are fetched when the device has nothing to do.
    pub prefetch: u32,
    /// Bytes of other nodes' data that are kept though no subtask here needs them now.
    pub cache: u64,
    /// What the coordinator assumes of the wires.
    pub network: Network,
}

impl Default for Settings {
    /// One long block is on its way, so that what is needed first comes first. Everything that
    /// was fetched is kept.
    fn default() -> Self {
        Self {
            prefetch: 1,
            cache: u64::MAX,
            network: Network::default(),
        }
    }
}

/// Of the messages and what nodes do with them. It grows with each change after which nodes
/// no longer understand older ones.
pub const VERSION: u32 = 9;

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

/// The node that has the results of each range of subtasks. It is shared, as a message to
/// every node has it.
pub type Results = Arc<[(Range<u64>, NodeId)]>;

/// A message. Data follow [`Message::Data`] as bytes that only drivers see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Message {
    /// To the coordinator: what this node is. `program` says what it runs, so that unlike
    /// programs are refused.
    Hello { program: String, info: NodeInfo },
    /// From the coordinator, to all: the run begins.
    Welcome { nodes: Nodes },
    /// To the first node, before each workload of several: what the sender is to run.
    Runs { what: Agreement },
    /// From the first node: all are to run the same.
    Agreed,
    /// From the coordinator: compute these subtasks, after those that came before. `written`
    /// tells who has what other subtasks of a chain have written for them, as far as this node
    /// was not reported before.
    Assign {
        task: TaskId,
        subtasks: Vec<Range<u64>>,
        written: Results,
    },
    /// From the coordinator: give back those of these subtasks that have not begun.
    Revoke {
        task: TaskId,
        subtasks: Vec<Range<u64>>,
    },
    /// To the coordinator: these subtasks have not begun here, and will not.
    Revoked {
        task: TaskId,
        subtasks: Vec<Range<u64>>,
        kept: Vec<Range<u64>>,
    },
    /// From the coordinator: another node has the result of a subtask. [`Self::Revoked`]
    /// answers.
    Cancel { task: TaskId, subtask: u64 },
    /// To the coordinator: a subtask is computed. `took` is its device's time, and `next`
    /// what the device does now.
    Done {
        task: TaskId,
        subtask: u64,
        device: u32,
        took: Nanos,
        next: Next,
    },
    /// From the coordinator, in tasks that reduce: the result of this subtask counts.
    Accept { task: TaskId, subtask: u64 },
    /// From the coordinator: combine results along a tree over these nodes.
    Combine { task: TaskId, nodes: Vec<NodeId> },
    /// To the coordinator, by the first of these nodes: all results are combined.
    Combined { task: TaskId },
    /// From the coordinator, to all: the task of this index in the chain has ended. Its
    /// subtasks have the numbers that they have in it.
    Ended {
        task: TaskId,
        index: usize,
        results: Results,
    },
    /// To the coordinator: a device of this node has failed for good.
    DeviceLost { device: u32 },
    /// To the coordinator: this node does not reach another one any longer.
    Unreachable { node: NodeId },
    /// Asks a node for parts.
    Fetch {
        task: TaskId,
        request: RequestId,
        sources: Vec<Source>,
    },
    /// From the node that a block was asked of: this node has it, or has asked for it, and
    /// answers the request of another one.
    Relay {
        task: TaskId,
        to: NodeId,
        request: RequestId,
        source: Source,
    },
    /// Answers [`Message::Relay`]: the block is not here any longer.
    NotHere {
        task: TaskId,
        to: NodeId,
        request: RequestId,
        source: Source,
    },
    /// Answers a request, with as many of the parts' bytes as follow: those from the byte `at`
    /// on. Other messages have the rest, in order.
    Data { request: RequestId, at: u64 },
    /// Results of a reduction, whose bytes follow.
    Partial { task: TaskId },
    /// From the coordinator, to all: a node is lost, and another one answers for its data
    /// with first contents. With `restart`, the tasks begin anew.
    Lost {
        node: NodeId,
        successor: NodeId,
        restart: bool,
    },
    /// From the coordinator, to all: the tasks begin anew, as this has gone wrong.
    Again { why: String },
    /// To the coordinator: data of tasks that have ended are gone at this node. `attempt`
    /// says how often the tasks have begun.
    Gone { attempt: u64, why: String },
    /// From the first node, to all, when a task has ended after which a condition says how
    /// tasks go on: whether it is met.
    Verdict { task: TaskId, is_met: bool },
    /// From the first node, to all, after a task: the bytes of a space, which follow.
    Common { task: TaskId },
    /// From the first node, after the last task: asks for a part. `attempt` says how often
    /// the tasks have begun.
    Collect { attempt: u64, part: SpaceBlock },
    /// Answers [`Message::Collect`]. The part's bytes follow.
    Piece { attempt: u64, part: SpaceBlock },
    /// In a co-run: what a node reads of another one's units after a step, or to begin a
    /// round with units that it has not had, follows; before it, so many bytes of sums.
    Band {
        attempt: u64,
        round: u32,
        step: u32,
        sums: u64,
    },
    /// In a co-run, to the first node with units: how fast a node was in a round.
    Pace {
        attempt: u64,
        round: u32,
        pace: Pace,
    },
    /// To all, before a round of a co-run: the units of each node.
    Division {
        attempt: u64,
        round: u32,
        units: Vec<Range<u64>>,
    },
    /// To a node without units: the co-run has ended after so many steps.
    BandsEnded {
        attempt: u64,
        steps: u32,
        units: Vec<Range<u64>>,
    },
    /// To the first node: this node's part of the run.
    Summary {
        attempt: u64,
        record: Box<NodeRecord>,
    },
    /// From the first node: everything is done.
    Finish,
    /// A rank stops the run.
    Stop { why: String },
}

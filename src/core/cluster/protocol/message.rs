//! Messages between nodes.

use serde::{Deserialize, Serialize};

use std::ops::Range;
use std::sync::Arc;

use super::RequestId;
use crate::balance::bands::Pace;
use crate::cluster::NodeId;
use crate::cluster::info::{NodeInfo, Nodes};
use crate::cluster::record::NodeRecord;
use crate::cluster::space::SpaceBlock;
use crate::cluster::task::TaskId;
use crate::cluster::task::chain::Source;
use crate::cluster::wire::agreement::Agreement;
use crate::spread::Next;
use crate::time::Nanos;

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

//! What nodes tell of a run when it has ended.

use serde::{Deserialize, Serialize};

use crate::time::Nanos;
use crate::verify::Checked;

/// A node's part in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// The name of its machine.
    pub name: String,
    pub devices: Vec<DevicePart>,
    /// Subtasks whose results count.
    pub subtasks: u64,
    /// Subtasks whose results another node had first.
    pub copied: u64,
    /// Subtasks that it gave back for other nodes.
    pub given_back: u64,
    /// Subtasks that several of its devices computed together, whether they count or not.
    pub divided: u64,
    /// What was fetched or looked up as it was touched, whether its subtasks count or not.
    pub touched: TouchRecord,
    /// Whether it was lost.
    pub lost: bool,
    /// In which at least one of its devices computed.
    #[serde(with = "crate::exact")]
    pub busy_seconds: f64,
    /// In which none did, although tasks ran.
    #[serde(with = "crate::exact")]
    pub idle_seconds: f64,
    /// Data of spaces that came from other nodes, and went to them.
    pub received_bytes: u64,
    pub sent_bytes: u64,
    /// The comparison of its blocks of the result.
    pub checked: Option<Checked>,
    /// Such as devices that were lost.
    pub notes: Vec<String>,
    /// Where the run is traced: what its devices did, in the order in which it ended.
    pub commands: Vec<CommandRecord>,
}

/// What the subtasks of a node have touched that they had not named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TouchRecord {
    /// Runs of subtasks that were given up for that.
    pub runs: u64,
    /// Blocks that were read from then on, and their bytes, whichever node had them.
    pub blocks: u64,
    pub bytes: u64,
}

/// A command of a subtask on a device. Times are nanoseconds on the first node's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRecord {
    /// The device, by its place in the node's list, and its queue.
    pub device: u32,
    pub queue: u32,
    pub stage: Stage,
    /// The task, by its place in the run.
    pub task: u32,
    pub subtask: u64,
    /// Bytes that it copies.
    pub bytes: u64,
    pub queued: Nanos,
    pub started: Nanos,
    pub ended: Nanos,
}

/// What a command of a subtask does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Copies what the subtask reads to the device's memory.
    Write,
    Compute,
    /// Copies its result to host memory.
    Read,
}

/// A task of a traced run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    pub name: String,
    pub began: Nanos,
    pub ended: Nanos,
}

/// A device's part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DevicePart {
    pub name: String,
    /// Subtasks that it computed, whether they count or not.
    pub subtasks: u64,
    /// The sum of their times. Several may be on one device at once.
    #[serde(with = "crate::exact")]
    pub seconds: f64,
}

/// A run over a cluster, as its first node sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterOutcome {
    /// From the first task's begin to the last one's end.
    pub seconds: f64,
    pub tasks: u64,
    /// How often the tasks began anew since a node was lost with their data.
    pub restarts: u64,
    pub nodes: Vec<NodeRecord>,
    /// The workload's figure, if it has one.
    pub figure: Option<f64>,
    /// Requests of nodes for others' work, and those that brought some, if the policy
    /// makes such.
    pub requests: Option<[u64; 2]>,
    /// Where the run is traced: when the first node began and ended its tasks.
    pub timeline: Vec<TaskRecord>,
}

impl ClusterOutcome {
    /// The comparisons of all nodes; `None` if there were none.
    pub fn checked(&self) -> Option<Checked> {
        let checked = self.nodes.iter().filter_map(|node| node.checked);
        checked.reduce(|mut all, one| {
            all.add(&one);
            all
        })
    }
}

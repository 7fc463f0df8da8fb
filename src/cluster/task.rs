//! Tasks: what every node knows of them.

use serde::{Deserialize, Serialize};

use std::ops::Range;

use super::space::Part;
use crate::codelet::Cost;

/// A task's number. All nodes run the same tasks in the same order.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct TaskId(pub u64);

/// A task: subtasks that may run at once and in any order (Unicorn, section III). All nodes
/// get the same answers.
pub trait Task: Send + Sync {
    /// Its name in reports and traces.
    fn name(&self) -> &str;

    /// The number of subtasks.
    fn count(&self) -> u64;

    /// The blocks that a subtask reads, as they were when the task began.
    fn reads(&self, subtask: u64) -> Vec<Part>;

    /// The blocks that a subtask writes, all of their elements. No element belongs to two
    /// subtasks, unless the task reduces.
    fn writes(&self, subtask: u64) -> Vec<Part>;

    /// The operations and the memory traffic of a subtask.
    fn cost(&self, subtask: u64) -> Cost;

    /// Whether all subtasks write the same blocks, and their results are combined by an
    /// operation that is commutative and associative.
    fn reduces(&self) -> bool {
        false
    }
}

/// Adds a number to runs of numbers that ascend.
pub fn extend_runs(runs: &mut Vec<Range<u64>>, number: u64) {
    match runs.last_mut() {
        Some(last) if last.end == number => last.end += 1,
        _ => runs.push(number..number + 1),
    }
}

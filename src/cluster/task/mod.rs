//! Tasks: what every node knows of them.
//!
//! * [`check`] refuses tasks whose subtasks write the same elements.
//! * [`ranked`] orders what a task wrote by rank, for the next one.

mod check;
pub mod ranked;

use serde::{Deserialize, Serialize};

use std::ops::Range;
use std::sync::Arc;

pub use check::{TaskError, check};

use super::space::Part;
use crate::codelet::{Codelet, Cost, Memory, Value};

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

    /// For each block that a subtask writes, whether it begins with its contents. By default
    /// those do that it also reads.
    fn changes(&self, subtask: u64) -> Vec<bool> {
        let reads = self.reads(subtask);
        let writes = self.writes(subtask);
        writes.iter().map(|part| reads.contains(part)).collect()
    }

    /// Whether all subtasks write the same blocks, and their results are combined by an
    /// operation that is commutative and associative.
    fn reduces(&self) -> bool {
        false
    }
}

/// How a subtask is computed: a codelet, whose first arguments are memory with the blocks
/// that it reads, then memory for those that it writes. A block that it changes is among the
/// latter only, with its contents. Blocks are stored by rows, with or without gaps; the
/// codelet gets their strides if it asks for them.
#[derive(Clone, Debug)]
pub struct SubtaskLaunch {
    pub codelet: Arc<Codelet>,
    pub units: Range<u64>,
    /// The arguments after the memory.
    pub values: Vec<SubtaskValue>,
}

/// An argument of a subtask's codelet after the memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SubtaskValue {
    Value(Value),
    /// The memory of the argument of this index again.
    Memory(usize),
    /// A `u32`: the numbers of so many bytes from a row of a block to the next one in its
    /// memory, which is the argument of index `memory`.
    Stride {
        memory: usize,
        number: u32,
    },
    /// A `u64`: the numbers of so many bytes before the one in this row and column of a block
    /// in its memory.
    First {
        memory: usize,
        number: u32,
        row: u64,
        column: u64,
    },
}

impl From<Value> for SubtaskValue {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

impl SubtaskValue {
    /// The value, where these memories have blocks of these widths in elements of these bytes,
    /// by rows without gaps.
    ///
    /// # Panics
    /// When there is no memory of its index.
    pub fn compact(self, memories: &[Memory], blocks: &[(u64, u64)]) -> Value {
        let pitch = |memory: usize| blocks.get(memory).map_or(0, |(width, bytes)| width * bytes);
        match self {
            Self::Value(value) => value,
            Self::Memory(memory) => Value::Memory(memories[memory]),
            Self::Stride { memory, number } => {
                Value::U32((pitch(memory) / u64::from(number)) as u32)
            }
            Self::First {
                memory,
                number,
                row,
                column,
            } => Value::U64(row * pitch(memory) / u64::from(number) + column),
        }
    }

    /// Where a block begins in its memory, and its stride.
    pub fn place(memory: usize, number: u32) -> [Self; 2] {
        Self::place_at(memory, number, 0, 0)
    }

    /// Where the part of a block from this row and column on begins, and its stride.
    pub fn place_at(memory: usize, number: u32, row: u64, column: u64) -> [Self; 2] {
        [
            Self::First {
                memory,
                number,
                row,
                column,
            },
            Self::Stride { memory, number },
        ]
    }
}

/// Adds the bytes of one result to those of another: the operation of a reduction.
pub type Combine = Arc<dyn Fn(&mut [u8], &[u8]) + Send + Sync>;

/// A task that can be computed.
pub trait Computed: Task {
    /// Whether the parts of one space that a subtask reads, where they follow one another,
    /// are one argument, a part after the other. Otherwise each part is one.
    fn gathers(&self) -> bool {
        false
    }

    /// Whether what a subtask writes lies in memory as long as its whole space, at the place
    /// that it has there, as for a kernel whose work-items find their elements by their
    /// numbers in the whole range. Such a part is of one row, or has all columns. Otherwise
    /// the memory has the part alone.
    fn keeps_places(&self) -> bool {
        false
    }

    /// Whether a part that a subtask writes without reading it begins with some contents.
    /// Otherwise the subtask writes all of its elements, whatever they were.
    fn begins(&self, part: &Part) -> bool {
        let _ = part;
        false
    }

    /// Writes what such a part begins with.
    fn begin(&self, part: &Part, bytes: &mut [u8]) {
        let _ = (part, bytes);
    }

    /// How a subtask is computed.
    fn launch(&self, subtask: u64) -> SubtaskLaunch;

    /// The codelet's arguments: by default the memory, in the order of [`SubtaskLaunch`],
    /// and then the launch's values.
    fn arguments(&self, memories: Vec<Memory>, values: Vec<Value>) -> Vec<Value> {
        let memories = memories.into_iter().map(Value::Memory);
        memories.chain(values).collect()
    }

    /// The operation of a task that reduces.
    fn combine(&self) -> Option<Combine> {
        None
    }
}

/// Adds a number to runs of numbers that ascend.
pub fn extend_runs(runs: &mut Vec<Range<u64>>, number: u64) {
    match runs.last_mut() {
        Some(last) if last.end == number => last.end += 1,
        _ => runs.push(number..number + 1),
    }
}

//! A task for tests: lists of what its subtasks read and write.

use super::Task;
use crate::cluster::space::SpaceBlock;
use crate::codelet::Cost;

/// A task of as many subtasks as it has costs.
#[derive(Clone, Debug)]
pub struct ListedTask {
    pub name: &'static str,
    pub costs: Vec<Cost>,
    /// By subtask; of those behind the end, nothing.
    pub reads: Vec<Vec<SpaceBlock>>,
    pub writes: Vec<Vec<SpaceBlock>>,
}

impl ListedTask {
    /// So many subtasks of this cost, which neither read nor write.
    pub fn of(name: &'static str, count: u64, cost: Cost) -> Self {
        Self {
            name,
            costs: vec![cost; count as usize],
            reads: Vec::new(),
            writes: Vec::new(),
        }
    }

    /// The same, each of an operation.
    pub fn light(count: u64) -> Self {
        let (flops, bytes) = (1.0, 0.0);
        Self::of("light", count, Cost { flops, bytes })
    }

    /// With what each subtask reads.
    pub fn reading(self, reads: impl Fn(u64) -> SpaceBlock) -> Self {
        let reads = (0..self.count()).map(|subtask| vec![reads(subtask)]);
        let reads = reads.collect();
        Self { reads, ..self }
    }

    /// With what each subtask writes.
    pub fn writing(self, writes: impl Fn(u64) -> SpaceBlock) -> Self {
        let writes = (0..self.count()).map(|subtask| vec![writes(subtask)]);
        let writes = writes.collect();
        Self { writes, ..self }
    }
}

impl Task for ListedTask {
    fn name(&self) -> &str {
        self.name
    }

    fn count(&self) -> u64 {
        self.costs.len() as u64
    }

    fn reads(&self, subtask: u64) -> Vec<SpaceBlock> {
        let reads = self.reads.get(subtask as usize);
        reads.cloned().unwrap_or_default()
    }

    fn writes(&self, subtask: u64) -> Vec<SpaceBlock> {
        let writes = self.writes.get(subtask as usize);
        writes.cloned().unwrap_or_default()
    }

    fn cost(&self, subtask: u64) -> Cost {
        self.costs[subtask as usize]
    }
}

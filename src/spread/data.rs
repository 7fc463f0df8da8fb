//! Which bytes subtasks read and where they are, as numbers that are quick to compare.

use std::collections::HashMap;

use crate::cluster::NodeId;
use crate::cluster::space::{Part, Spaces};
use crate::cluster::task::Task;

/// A set of small numbers, which is asked far more often than anything else.
#[derive(Clone, Debug, Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn contains(&self, number: u32) -> bool {
        let word = self.0.get(number as usize / 64);
        word.is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    fn insert(&mut self, number: u32) {
        let word = number as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (number % 64);
    }
}

/// What the subtasks of a task read: blocks that one node has, each counted once however
/// many subtasks read it. Blocks that overlap without being equal count as unlike ones.
#[derive(Clone, Debug)]
pub struct Data {
    /// The bytes and the holder of each block.
    blocks: Vec<(u64, NodeId)>,
    /// The blocks that each subtask reads are `reads[begins[s]..begins[s + 1]]`.
    reads: Vec<u32>,
    begins: Vec<usize>,
    /// Blocks of others that each node has or will have, because subtasks there read them.
    fetched: Vec<Bits>,
}

/// Most bytes that this takes: a small part of a node's memory.
const MOST_BYTES: usize = 1 << 29;

/// Bytes of a block, with its place in a hash table that may be half empty.
const BLOCK_BYTES: usize = 128;

impl Data {
    /// Asks each subtask of a task what it reads. None if that are too many blocks to keep,
    /// as where each subtask reads a column, and each row is a block. Policies then do not
    /// know where data are.
    pub fn of(task: &dyn Task, spaces: &Spaces, nodes: usize) -> Option<Self> {
        Self::within(MOST_BYTES, task, spaces, nodes)
    }

    fn within(most: usize, task: &dyn Task, spaces: &Spaces, nodes: usize) -> Option<Self> {
        let mut numbers: HashMap<Part, u32> = HashMap::new();
        let mut data = Self {
            blocks: Vec::new(),
            reads: Vec::new(),
            begins: vec![0],
            fetched: vec![Bits::default(); nodes],
        };
        for subtask in 0..task.count() {
            for part in task.reads(subtask) {
                let directory = spaces.directory(part.space);
                for (block, holder) in directory.holders(&part.block) {
                    let part = Part {
                        space: part.space,
                        block,
                    };
                    let blocks = &mut data.blocks;
                    let bytes = spaces.bytes(&part);
                    data.reads.push(*numbers.entry(part).or_insert_with(|| {
                        blocks.push((bytes, holder.node));
                        blocks.len() as u32 - 1
                    }));
                    if data.memory() > most {
                        return None;
                    }
                }
            }
            data.begins.push(data.reads.len());
        }
        Some(data)
    }

    /// Bytes that this takes, about.
    fn memory(&self) -> usize {
        self.reads.len() * size_of::<u32>() + self.blocks.len() * BLOCK_BYTES
    }

    fn reads(&self, subtask: u64) -> &[u32] {
        let subtask = subtask as usize;
        &self.reads[self.begins[subtask]..self.begins[subtask + 1]]
    }

    /// The bytes and holders of the blocks that a subtask reads and a node neither has nor
    /// fetches for another one.
    pub fn missing(&self, subtask: u64, node: NodeId) -> impl Iterator<Item = (u64, NodeId)> + '_ {
        let fetched = &self.fetched[node.index()];
        let blocks = self.reads(subtask).iter();
        let lacked = blocks.filter(|&&block| !fetched.contains(block));
        let lacked = lacked.map(|&block| self.blocks[block as usize]);
        lacked.filter(move |&(_, holder)| holder != node)
    }

    /// The bytes that a subtask reads.
    pub fn bytes(&self, subtask: u64) -> u64 {
        let reads = self.reads(subtask).iter();
        reads.map(|&block| self.blocks[block as usize].0).sum()
    }

    /// The node that has most of the bytes that a subtask reads.
    pub fn home(&self, subtask: u64) -> Option<NodeId> {
        let mut bytes: Vec<(NodeId, u64)> = Vec::new();
        for &block in self.reads(subtask) {
            let (more, node) = self.blocks[block as usize];
            match bytes.iter_mut().find(|(other, _)| *other == node) {
                Some((_, sum)) => *sum += more,
                None => bytes.push((node, more)),
            }
        }
        let most = bytes
            .into_iter()
            .max_by_key(|&(node, sum)| (sum, std::cmp::Reverse(node)));
        most.map(|(node, _)| node)
    }

    /// A node will fetch what a subtask reads.
    pub fn fetch(&mut self, subtask: u64, node: NodeId) {
        for &block in &self.reads[self.begins[subtask as usize]..self.begins[subtask as usize + 1]]
        {
            if self.blocks[block as usize].1 != node {
                self.fetched[node.index()].insert(block);
            }
        }
    }

    /// Another node answers for what a lost node had.
    pub fn lost(&mut self, node: NodeId, heir: NodeId) {
        for (_, holder) in self.blocks.iter_mut().filter(|(_, holder)| *holder == node) {
            *holder = heir;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::space::{Block, Extent, SpaceId};
    use crate::codelet::Cost;

    /// Each subtask reads a column.
    struct Columns(SpaceId);

    const SIDE: u64 = 20;

    impl Task for Columns {
        fn name(&self) -> &str {
            "columns"
        }

        fn count(&self) -> u64 {
            SIDE
        }

        fn reads(&self, subtask: u64) -> Vec<Part> {
            let block = Block::new(0..SIDE, subtask..subtask + 1);
            let space = self.0;
            vec![Part { space, block }]
        }

        fn writes(&self, _subtask: u64) -> Vec<Part> {
            Vec::new()
        }

        fn cost(&self, _subtask: u64) -> Cost {
            Cost {
                flops: 1.0,
                bytes: 1.0,
            }
        }
    }

    #[test]
    fn more_blocks_than_the_limit_are_not_kept() {
        let extent = Extent {
            rows: SIDE,
            columns: SIDE,
            element: 8,
        };
        // A block is a row: three quarters of them on node 1.
        let rows = (0..SIDE).map(|row| {
            let node = NodeId(u32::from(row % 4 != 0));
            (Block::new(row..row + 1, 0..SIDE), node)
        });
        let mut spaces = Spaces::default();
        let task = Columns(spaces.add(extent, rows));
        let data = Data::of(&task, &spaces, 2).unwrap();
        assert_eq!(data.home(7), Some(NodeId(1)));
        let missing = data.missing(7, NodeId(1));
        assert_eq!(missing.map(|(bytes, _)| bytes).sum::<u64>(), SIDE / 4 * 8);
        assert_eq!(data.memory(), (SIDE * SIDE) as usize * (4 + BLOCK_BYTES));
        assert!(Data::within(data.memory(), &task, &spaces, 2).is_some());
        assert!(Data::within(data.memory() - 1, &task, &spaces, 2).is_none());
    }
}

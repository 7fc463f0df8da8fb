//! Which bytes subtasks read and where they are, as numbers that are quick to compare.

use std::collections::HashMap;
use std::sync::Arc;

use crate::cluster::NodeId;
use crate::cluster::space::{Block, SpaceBlock, Spaces};
use crate::cluster::task::Task;
use crate::cluster::task::chain::{Chain, Source};

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

/// What the subtasks of a chain read: blocks that one node has, each counted once however
/// many subtasks read it. Blocks that overlap without being equal count as unlike ones.
pub struct Data {
    chain: Arc<Chain>,
    /// The bytes and the holder of each block; none of one that a subtask will write.
    blocks: Vec<(u64, Option<NodeId>)>,
    /// The blocks that each subtask of the chain writes, and that others read.
    written: HashMap<u64, Vec<u32>>,
    /// The blocks that each subtask reads are `reads[begins[s]..begins[s + 1]]`.
    reads: Vec<u32>,
    begins: Vec<usize>,
    /// The places in `reads` of blocks that their subtask also writes.
    changed: Bits,
    /// The node that has most of what each subtask reads, when all of it is written.
    main_holders: Vec<Option<NodeId>>,
    /// Blocks of others that each node has or will have, because subtasks there read them.
    fetched: Vec<Bits>,
    /// Those of them that any node has, which may send them on.
    copied: Bits,
    /// Bytes that each node has of what a subtask reads; all 0 between two uses.
    sums: Vec<u64>,
}

/// A block that a node lacks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Missing {
    pub bytes: u64,
    /// The node that must send it; none where several may.
    pub holder: Option<NodeId>,
}

/// Nodes that have almost as much of what a subtask reads as the one that has most, as where
/// bands differ by a row, are main holders as well.
const ALMOST: f64 = 0.95;

/// Most bytes that this takes: a small part of a node's memory.
const MOST_BYTES: usize = 1 << 29;

/// Bytes of a block, with its place in a hash table that may be half empty.
const BLOCK_BYTES: usize = 128;

impl Data {
    /// Asks each subtask of a chain what it reads. None if that are too many blocks to keep,
    /// as where each subtask reads a column, and each row is a block. Policies then do not
    /// know where data are.
    pub fn of(chain: &Arc<Chain>, spaces: &Spaces, nodes: usize) -> Option<Self> {
        Self::within(MOST_BYTES, chain, spaces, nodes)
    }

    fn within(most: usize, chain: &Arc<Chain>, spaces: &Spaces, nodes: usize) -> Option<Self> {
        let mut numbers: HashMap<(SpaceBlock, Option<u64>), u32> = HashMap::new();
        let mut data = Self {
            chain: Arc::clone(chain),
            blocks: Vec::new(),
            written: HashMap::new(),
            reads: Vec::new(),
            begins: vec![0],
            changed: Bits::default(),
            main_holders: vec![None; chain.count() as usize],
            fetched: vec![Bits::default(); nodes],
            copied: Bits::default(),
            sums: vec![0; nodes],
        };
        for subtask in 0..chain.count() {
            let written = chain.writes(subtask);
            for source in chain.sources(subtask) {
                let Source { part, writer } = source;
                let is_same =
                    |own: &SpaceBlock| own.space == part.space && own.block.contains(&part.block);
                let is_changed = written.iter().any(is_same);
                let directory = spaces.directory(part.space);
                let holders = directory.holders(&part.block);
                let before = holders.map(|(block, holder)| (block, Some(holder.node)));
                let found: Vec<(Block, Option<NodeId>)> = match writer {
                    Some(_) => vec![(part.block.clone(), None)],
                    None => before.collect(),
                };
                for (block, holder) in found {
                    let part = SpaceBlock {
                        space: part.space,
                        block,
                    };
                    if is_changed {
                        data.changed.insert(data.reads.len() as u32);
                    }
                    let bytes = spaces.bytes(&part);
                    let (blocks, of_writers) = (&mut data.blocks, &mut data.written);
                    data.reads
                        .push(*numbers.entry((part, writer)).or_insert_with(|| {
                            let number = blocks.len() as u32;
                            blocks.push((bytes, holder));
                            if let Some(writer) = writer {
                                of_writers.entry(writer).or_default().push(number);
                            }
                            number
                        }));
                    if data.memory() > most {
                        return None;
                    }
                }
            }
            data.begins.push(data.reads.len());
        }
        data.find_main_holders();
        Some(data)
    }

    /// A subtask of the chain has written what others read.
    pub fn written(&mut self, subtask: u64, node: NodeId) {
        for block in self.written.remove(&subtask).unwrap_or_default() {
            self.blocks[block as usize].1 = Some(node);
        }
    }

    /// Bytes that this takes, about.
    fn memory(&self) -> usize {
        self.reads.len() * size_of::<u32>() + self.blocks.len() * BLOCK_BYTES
    }

    fn reads(&self, subtask: u64) -> &[u32] {
        let subtask = subtask as usize;
        &self.reads[self.begins[subtask]..self.begins[subtask + 1]]
    }

    /// The blocks that a subtask reads and a node neither has nor fetches for another one.
    pub fn missing(&self, subtask: u64, node: NodeId) -> impl Iterator<Item = Missing> + '_ {
        let fetched = &self.fetched[node.index()];
        let blocks = self.reads(subtask).iter();
        let lacked = blocks.filter(|&&block| !fetched.contains(block));
        let lacked = lacked.map(|&block| (block, self.blocks[block as usize]));
        let lacked = lacked.filter(move |(_, (_, holder))| *holder != Some(node));
        lacked.map(|(block, (bytes, holder))| Missing {
            bytes,
            holder: holder.filter(|_| !self.copied.contains(block)),
        })
    }

    /// The bytes of blocks that a subtask changes, and who has them, if that is not this node:
    /// they will want them back.
    pub fn returns(&self, subtask: u64, node: NodeId) -> impl Iterator<Item = (u64, NodeId)> + '_ {
        let begin = self.begins[subtask as usize] as u32;
        let read = (begin..).zip(self.reads(subtask));
        let changed = read.filter(|(place, _)| self.changed.contains(*place));
        let blocks = changed.map(|(_, &block)| self.blocks[block as usize]);
        let known = blocks.filter_map(|(bytes, holder)| Some((bytes, holder?)));
        known.filter(move |(_, holder)| *holder != node)
    }

    /// The number of blocks that a subtask reads.
    pub fn count(&self, subtask: u64) -> usize {
        self.reads(subtask).len()
    }

    /// The bytes that a subtask reads.
    pub fn bytes(&self, subtask: u64) -> u64 {
        let reads = self.reads(subtask).iter();
        reads.map(|&block| self.blocks[block as usize].0).sum()
    }

    /// The node that has most of the bytes that a subtask reads.
    pub fn main_holder(&self, subtask: u64) -> Option<NodeId> {
        self.main_holders[subtask as usize]
    }

    fn find_main_holders(&mut self) {
        let count = self.begins.len() as u64 - 1;
        (0..count).for_each(|subtask| self.find_main_holder(subtask));
    }

    /// Finds the main holder of a subtask. Where several nodes have most, the subtasks of its
    /// task are divided among them in the order of both.
    pub fn find_main_holder(&mut self, subtask: u64) {
        let mut having: Vec<NodeId> = Vec::new();
        let range = self.begins[subtask as usize]..self.begins[subtask as usize + 1];
        for &block in &self.reads[range] {
            let (bytes, Some(node)) = self.blocks[block as usize] else {
                continue;
            };
            let sum = &mut self.sums[node.index()];
            if bytes > 0 && *sum == 0 {
                having.push(node);
            }
            *sum += bytes;
        }
        let sum = |node: &NodeId| self.sums[node.index()] as f64;
        let most = having.iter().map(sum).fold(0.0, f64::max);
        let mut best: Vec<NodeId> = having.clone();
        best.retain(|node| sum(node) >= ALMOST * most);
        best.sort_unstable();
        let (task, own) = self.chain.place(subtask);
        let count = self.chain.tasks()[task].count();
        let place = (own * best.len() as u64 / count) as usize;
        self.main_holders[subtask as usize] = best.get(place).copied();
        having.iter().for_each(|node| self.sums[node.index()] = 0);
    }

    /// A node will fetch what a subtask reads.
    pub fn fetch(&mut self, subtask: u64, node: NodeId) {
        for &block in &self.reads[self.begins[subtask as usize]..self.begins[subtask as usize + 1]]
        {
            if self.blocks[block as usize].1 != Some(node) {
                self.fetched[node.index()].insert(block);
                self.copied.insert(block);
            }
        }
    }

    /// Another node answers for what a lost node had.
    pub fn lost(&mut self, node: NodeId, successor: NodeId) {
        let blocks = self.blocks.iter_mut();
        for (_, holder) in blocks.filter(|(_, holder)| *holder == Some(node)) {
            *holder = Some(successor);
        }
        self.find_main_holders();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::cluster::space::Extent;
    use crate::cluster::task::fixtures::ListedTask;

    const SIDE: u64 = 20;

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
        // Each subtask reads a column.
        let space = spaces.add(extent, rows);
        let columns = ListedTask::light(SIDE).reading(|subtask| SpaceBlock {
            space,
            block: Block::new(0..SIDE, subtask..subtask + 1),
        });
        let task = Arc::new(Chain::of(Arc::new(columns)));
        let data = Data::of(&task, &spaces, 2).unwrap();
        assert_eq!(data.main_holder(7), Some(NodeId(1)));
        let missing = data.missing(7, NodeId(1));
        assert_eq!(missing.map(|block| block.bytes).sum::<u64>(), SIDE / 4 * 8);
        assert_eq!(data.memory(), (SIDE * SIDE) as usize * (4 + BLOCK_BYTES));
        assert!(Data::within(data.memory(), &task, &spaces, 2).is_some());
        assert!(Data::within(data.memory() - 1, &task, &spaces, 2).is_none());
    }
}

//! Shared address spaces: two-dimensional arrays whose blocks are spread over the nodes
//! (Unicorn, section IV.B).
//!
//! What a task writes becomes visible when it ends (bulk synchronous), so all of its
//! subtasks see the data of its begin. A directory changes only between tasks.

mod directory;

use serde::{Deserialize, Serialize};

use std::ops::Range;

pub use directory::{Directory, Holder, Rectangles};

use super::NodeId;
use super::task::Task;

/// A space. All nodes make spaces in the same order, so ids are equal everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SpaceId(pub u32);

/// The extent of a space. A vector has one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub rows: u64,
    pub columns: u64,
    /// Bytes of an element.
    pub element: u64,
}

impl Extent {
    /// All elements.
    pub fn whole(&self) -> Block {
        Block::new(0..self.rows, 0..self.columns)
    }

    /// The bytes of a block.
    pub fn bytes(&self, block: &Block) -> u64 {
        block.elements() * self.element
    }

    /// The bytes of all elements, of a space of any size.
    pub fn all_bytes(&self) -> u128 {
        [self.rows, self.columns, self.element]
            .map(u128::from)
            .into_iter()
            .product()
    }

    /// Where the bytes of a block begin, by rows without gaps. They follow one another if
    /// it is of one row, or has all columns.
    pub fn offset(&self, block: &Block) -> u64 {
        (block.rows.start * self.columns + block.columns.start) * self.element
    }
}

/// A block of a space.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SpaceBlock {
    pub space: SpaceId,
    pub block: Block,
}

/// All spaces, with the nodes that have their blocks.
#[derive(Clone, Debug, Default)]
pub struct Spaces {
    all: Vec<SpaceEntry>,
}

#[derive(Clone, Debug)]
struct SpaceEntry {
    extent: Extent,
    directory: Directory,
    /// Whether every node makes what it reads, so that nothing travels.
    is_made: bool,
}

impl Spaces {
    /// Adds a space whose first contents each node can compute by itself; `placement` says
    /// which node has which block. Blocks that it does not name have no contents.
    pub fn add(
        &mut self,
        extent: Extent,
        placement: impl IntoIterator<Item = (Block, NodeId)>,
    ) -> SpaceId {
        self.insert(extent, placement, false)
    }

    /// Adds a space of which every node makes what its subtasks read, and which no task
    /// writes. `placement` says where subtasks that read a block should run.
    pub fn add_made(
        &mut self,
        extent: Extent,
        placement: impl IntoIterator<Item = (Block, NodeId)>,
    ) -> SpaceId {
        self.insert(extent, placement, true)
    }

    fn insert(
        &mut self,
        extent: Extent,
        placement: impl IntoIterator<Item = (Block, NodeId)>,
        is_made: bool,
    ) -> SpaceId {
        let id = SpaceId(self.all.len() as u32);
        let mut directory = Directory::default();
        for (block, node) in placement {
            directory.set(
                &block,
                Holder {
                    node,
                    initial: true,
                },
            );
        }
        self.all.push(SpaceEntry {
            extent,
            directory,
            is_made,
        });
        id
    }

    /// Whether there is such a space.
    pub fn has(&self, space: SpaceId) -> bool {
        (space.0 as usize) < self.all.len()
    }

    /// # Panics
    /// When the space was never added.
    pub fn extent(&self, space: SpaceId) -> Extent {
        self.entry(space).extent
    }

    /// Whether every node makes what it reads of a space.
    ///
    /// # Panics
    /// When the space was never added.
    pub fn is_made(&self, space: SpaceId) -> bool {
        self.entry(space).is_made
    }

    /// # Panics
    /// When the space was never added.
    pub fn directory(&self, space: SpaceId) -> &Directory {
        &self.entry(space).directory
    }

    /// The bytes of a part.
    ///
    /// # Panics
    /// When the space was never added.
    pub fn bytes(&self, part: &SpaceBlock) -> u64 {
        self.extent(part.space).bytes(&part.block)
    }

    fn entry(&self, space: SpaceId) -> &SpaceEntry {
        let entry = self.all.get(space.0 as usize);
        entry.unwrap_or_else(|| panic!("space {} does not exist", space.0))
    }

    /// Notes that a node has the new contents of a part, and no other node has them.
    pub fn written(&mut self, part: &SpaceBlock, node: NodeId) {
        if let Some(entry) = self.all.get_mut(part.space.0 as usize) {
            let initial = false;
            entry.directory.set(&part.block, Holder { node, initial });
        }
    }

    /// Notes who has what the subtasks of a task that has ended wrote.
    pub fn record(&mut self, task: &dyn Task, results: &[(Range<u64>, NodeId)]) {
        for (subtasks, node) in results {
            // All subtasks of a task that reduces write the same parts.
            let count = if task.reduces() { 1 } else { usize::MAX };
            for subtask in subtasks.clone().take(count) {
                for part in task.writes(subtask) {
                    self.written(&part, *node);
                }
            }
        }
    }

    /// Takes a lost node out. Its blocks with first contents go to `successor`, which computes
    /// them again. The result is whether other blocks were lost with it.
    pub fn lost(&mut self, node: NodeId, successor: NodeId) -> bool {
        let spaces = self.all.iter_mut();
        let lost = spaces.map(|entry| entry.directory.lost(node, successor));
        lost.fold(false, |any, lost| any | lost)
    }
}

/// A rectangle of elements: a range of rows and a range of columns. A range of a vector is
/// a block of one row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Block {
    pub rows: Range<u64>,
    pub columns: Range<u64>,
}

impl Block {
    /// A block; empty if one of its ranges is.
    pub fn new(rows: Range<u64>, columns: Range<u64>) -> Self {
        Self { rows, columns }
    }

    /// The number of rows.
    pub fn height(&self) -> u64 {
        self.rows.end.saturating_sub(self.rows.start)
    }

    /// The number of columns.
    pub fn width(&self) -> u64 {
        self.columns.end.saturating_sub(self.columns.start)
    }

    /// The number of elements.
    pub fn elements(&self) -> u64 {
        self.height() * self.width()
    }

    pub fn is_empty(&self) -> bool {
        self.elements() == 0
    }

    /// Whether all elements of another block are in this one.
    pub fn contains(&self, other: &Self) -> bool {
        other.is_empty()
            || (self.rows.start <= other.rows.start
                && other.rows.end <= self.rows.end
                && self.columns.start <= other.columns.start
                && other.columns.end <= self.columns.end)
    }

    /// The elements of this block before the first one of a part of it, by rows.
    pub fn offset_of(&self, part: &Self) -> u64 {
        let rows = part.rows.start - self.rows.start;
        rows * self.width() + part.columns.start - self.columns.start
    }

    /// The elements that both have; `None` if there are none.
    pub fn common(&self, other: &Self) -> Option<Self> {
        let both = |a: &Range<u64>, b: &Range<u64>| a.start.max(b.start)..a.end.min(b.end);
        let common = Self::new(
            both(&self.rows, &other.rows),
            both(&self.columns, &other.columns),
        );
        (!common.is_empty()).then_some(common)
    }

    /// The elements of this block that another does not have, as at most four blocks:
    /// above it, below it, left and right of it.
    pub fn without(&self, other: &Self) -> Vec<Self> {
        let Some(hole) = self.common(other) else {
            return match self.is_empty() {
                true => Vec::new(),
                false => vec![self.clone()],
            };
        };
        let pieces = [
            Self::new(self.rows.start..hole.rows.start, self.columns.clone()),
            Self::new(hole.rows.end..self.rows.end, self.columns.clone()),
            Self::new(hole.rows.clone(), self.columns.start..hole.columns.start),
            Self::new(hole.rows.clone(), hole.columns.end..self.columns.end),
        ];
        pieces
            .into_iter()
            .filter(|piece| !piece.is_empty())
            .collect()
    }
}

/// Cuts a block into pieces of at most so many bytes, or one element: whole rows where some
/// fit, parts of a row otherwise. The bytes of the pieces, one after the other, are those of
/// the block by rows.
pub fn pieces(extent: Extent, block: &Block, bytes: u64) -> Vec<Block> {
    let row = extent.element * block.width();
    let (rows, columns) = match row > 0 && row <= bytes {
        true => (bytes / row, block.width()),
        false => (1, (bytes / extent.element.max(1)).max(1)),
    };
    let mut pieces = Vec::new();
    for begin in block.rows.clone().step_by(rows as usize) {
        for first in block.columns.clone().step_by(columns as usize) {
            pieces.push(Block::new(
                begin..(begin + rows).min(block.rows.end),
                first..(first + columns).min(block.columns.end),
            ));
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block's bytes begin where those of what is before it end: whole rows, and parts of
    /// a row.
    #[test]
    fn blocks_without_gaps_follow_one_another() {
        let extent = Extent {
            rows: 5,
            columns: 7,
            element: 3,
        };
        let mut end = 0;
        for block in [
            Block::new(0..2, 0..7),
            Block::new(2..3, 0..4),
            Block::new(2..3, 4..7),
            Block::new(3..5, 0..7),
        ] {
            assert_eq!(extent.offset(&block), end);
            end += extent.bytes(&block);
        }
        assert_eq!(end, extent.bytes(&extent.whole()));
    }

    fn random_block(random: &mut fastrand::Rng) -> Block {
        let mut range = || {
            let begin = random.u64(..7);
            begin..begin + random.u64(..6)
        };
        Block::new(range(), range())
    }

    fn has(block: &Block, row: u64, column: u64) -> bool {
        block.rows.contains(&row) && block.columns.contains(&column)
    }

    /// Every element is in exactly the pieces where it belongs.
    #[test]
    fn common_and_without_divide_a_block() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..2000 {
            let (one, other) = (random_block(&mut random), random_block(&mut random));
            let (common, rest) = (one.common(&other), one.without(&other));
            for row in 0..14 {
                for column in 0..14 {
                    let both = has(&one, row, column) && has(&other, row, column);
                    let only = has(&one, row, column) && !has(&other, row, column);
                    assert_eq!(common.as_ref().is_some_and(|b| has(b, row, column)), both);
                    let times = rest.iter().filter(|b| has(b, row, column)).count();
                    assert_eq!(times, usize::from(only), "{one:?} without {other:?}");
                }
            }
            assert_eq!(
                one.contains(&other),
                other.is_empty() || other.without(&one).is_empty()
            );
        }
    }

    /// Elements come in the order of the block, each once.
    #[test]
    fn pieces_follow_one_another() {
        let extent = Extent {
            rows: 9,
            columns: 9,
            element: 3,
        };
        for bytes in 1..100 {
            for block in [
                Block::new(2..7, 1..8),
                Block::new(0..1, 0..9),
                Block::new(3..3, 0..9),
                Block::new(0..9, 4..4),
            ] {
                let elements = |block: &Block| {
                    let columns = block.columns.clone();
                    let rows = block.rows.clone();
                    rows.flat_map(|row| columns.clone().map(move |column| (row, column)))
                        .collect::<Vec<_>>()
                };
                let pieces = pieces(extent, &block, bytes);
                assert!(pieces.iter().all(|piece| {
                    let size = extent.bytes(piece);
                    size > 0 && (size <= bytes || piece.elements() == 1)
                }));
                let found: Vec<_> = pieces.iter().flat_map(elements).collect();
                assert_eq!(found, elements(&block), "{bytes} bytes of {block:?}");
            }
        }
    }
}

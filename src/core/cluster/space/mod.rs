//! Shared address spaces: two-dimensional arrays whose blocks are spread over the nodes
//! (Unicorn, section IV.B).
//!
//! What a task writes becomes visible when it ends (bulk synchronous), so all of its
//! subtasks see the data of its begin. A directory changes only between tasks.

mod block;
mod directory;
mod pieces;
mod rectangles;

use serde::{Deserialize, Serialize};

use std::ops::Range;

pub use block::Block;
pub use directory::{Directory, Holder};
pub use pieces::pieces;
pub use rectangles::Rectangles;

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
    all: Vec<Option<SpaceEntry>>,
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
        self.all.push(Some(SpaceEntry {
            extent,
            directory,
            is_made,
        }));
        id
    }

    /// Whether there is such a space.
    pub fn has(&self, space: SpaceId) -> bool {
        let entry = self.all.get(space.0 as usize);
        entry.is_some_and(Option::is_some)
    }

    /// Forgets a space.
    pub fn remove(&mut self, space: SpaceId) {
        if let Some(entry) = self.all.get_mut(space.0 as usize) {
            *entry = None;
        }
    }

    /// # Panics
    /// When the space was removed or never added.
    pub fn extent(&self, space: SpaceId) -> Extent {
        self.entry(space).extent
    }

    /// Whether every node makes what it reads of a space.
    ///
    /// # Panics
    /// When the space was removed or never added.
    pub fn is_made(&self, space: SpaceId) -> bool {
        self.entry(space).is_made
    }

    /// # Panics
    /// When the space was removed or never added.
    pub fn directory(&self, space: SpaceId) -> &Directory {
        &self.entry(space).directory
    }

    /// The bytes of a part.
    ///
    /// # Panics
    /// When the space was removed or never added.
    pub fn bytes(&self, part: &SpaceBlock) -> u64 {
        self.extent(part.space).bytes(&part.block)
    }

    fn entry(&self, space: SpaceId) -> &SpaceEntry {
        let entry = self.all.get(space.0 as usize).and_then(Option::as_ref);
        entry.unwrap_or_else(|| panic!("space {} does not exist", space.0))
    }

    /// Notes that a node has the new contents of a part, and no other node has them.
    pub fn written(&mut self, part: &SpaceBlock, node: NodeId) {
        if let Some(Some(entry)) = self.all.get_mut(part.space.0 as usize) {
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
        let spaces = self.all.iter_mut().flatten();
        let lost = spaces.map(|entry| entry.directory.lost(node, successor));
        lost.fold(false, |any, lost| any | lost)
    }
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
}

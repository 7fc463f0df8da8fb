//! The result at the first node: it asks the others for their blocks, a piece of the space
//! after the other, so that no node has more of them in flight than two pieces.

use std::io;

use super::ClusterError;
use super::node::{Interruption, Node};
use super::subtasks::Subtasks;
use pdawl_core::cluster::NodeId;
use pdawl_core::cluster::protocol::{Message, RequestId};
use pdawl_core::cluster::space::{Block, SpaceBlock, SpaceId, pieces};
use pdawl_core::cluster::task::chain::Source;
use pdawl_core::cluster::wire::memory;

/// Bytes of a piece: enough that a network or a disk is not slowed down by their number.
const PIECE: u64 = 16 << 20;

impl Node<'_> {
    /// Gives all bytes of a block of a space to `take`, by rows.
    ///
    /// # Errors
    /// What `take` refuses, and elements that no task has written.
    pub(super) fn gather(
        &mut self,
        space: SpaceId,
        block: &Block,
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), Interruption> {
        let extent = self.spaces.extent(space);
        let pieces = pieces(extent, block, PIECE);
        let mut bytes = Vec::new();
        let mut asked = match pieces.first() {
            Some(first) => self.collect(space, first)?,
            None => Vec::new(),
        };
        for (number, block) in pieces.iter().enumerate() {
            let waiting = match pieces.get(number + 1) {
                Some(next) => std::mem::replace(&mut asked, self.collect(space, next)?),
                None => std::mem::take(&mut asked),
            };
            let is_here = |node: &Self| waiting.iter().all(|part| node.pieces.contains_key(part));
            self.until_sent(is_here)?;
            bytes.resize(extent.bytes(block) as usize, 0);
            let part = SpaceBlock {
                space,
                block: block.clone(),
            };
            self.put_together(&part, waiting, &mut bytes)?;
            take(&bytes).map_err(ClusterError::from)?;
        }
        Ok(())
    }

    /// All bytes of a space.
    pub(super) fn whole(&mut self, space: SpaceId) -> Result<Vec<u8>, Interruption> {
        let mut all = Vec::new();
        let whole = self.spaces.extent(space).whole();
        self.gather(space, &whole, |bytes| {
            all.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(all)
    }

    /// Asks the other nodes for what they have of a block, and tells the parts.
    fn collect(&mut self, space: SpaceId, block: &Block) -> Result<Vec<SpaceBlock>, ClusterError> {
        let me = self.me();
        let directory = self.spaces.directory(space);
        let foreign = (directory.holders(block)).filter(|(_, holder)| holder.node != me);
        let foreign: Vec<(Block, NodeId)> = foreign
            .map(|(block, holder)| (block, holder.node))
            .collect();
        let mut parts = Vec::new();
        for (block, node) in foreign {
            let part = SpaceBlock { space, block };
            let message = Message::Collect {
                attempt: self.machine.restarts(),
                part: part.clone(),
            };
            self.send(node, message)?;
            parts.push(part);
        }
        Ok(parts)
    }

    /// Writes a part of which this node has some, and has got the others.
    ///
    /// # Errors
    /// When the tasks begin anew, what a run refuses, and elements that no task has written.
    pub(super) fn put_together(
        &mut self,
        part: &SpaceBlock,
        got: Vec<SpaceBlock>,
        to: &mut [u8],
    ) -> Result<(), Interruption> {
        let (me, space) = (self.me(), part.space);
        let holders = self.spaces.directory(space).holders(&part.block);
        let own = holders.filter(|(_, holder)| holder.node == me);
        let own = own.map(|(block, _)| SpaceBlock { space, block }).collect();
        self.until_here(own)?;
        let count = got.len() as u64;
        // Requests of tasks are numbered from the other end.
        let request = |number| RequestId(u64::MAX - number);
        let Subtasks { graph, store, .. } = &mut self.subtasks;
        for (number, part) in (0..).zip(got) {
            if let Some((bytes, at)) = self.pieces.remove(&part) {
                let asked = (request(number), &[Source::before(part)][..]);
                store.receive(graph, self.runtime, &self.spaces, asked, (0, &bytes[at..]))?;
                memory::keep(bytes);
            }
        }
        let source = Source::before(part.clone());
        let copied = store.copy(graph, self.runtime, &self.spaces, &source, to);
        (0..count).for_each(|number| store.release(graph, request(number)));
        self.subtasks.changed = true;
        Ok(copied?)
    }
}

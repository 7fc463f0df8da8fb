//! Small spaces that the first node needs between two tasks, and what it gives to all: the
//! data that the blocks of the next task depend on, and whether tasks go on.

use super::encode::encode;
use super::node::{Interruption, Node};
use crate::workload::cluster::IsMet;
use pdawl_core::cluster::NodeId;
use pdawl_core::cluster::protocol::Message;
use pdawl_core::cluster::space::{SpaceBlock, SpaceId};

impl Node<'_> {
    /// At the first node, the bytes of a space after a task that has ended. All nodes call it:
    /// those that have some of the space send it unasked, as they know when the task has
    /// ended.
    ///
    /// # Errors
    /// When the tasks begin anew, what a run refuses, and elements that no task has written.
    pub(super) fn brought(&mut self, space: SpaceId) -> Result<Option<Vec<u8>>, Interruption> {
        let me = self.me();
        let block = self.spaces.extent(space).whole();
        let holders = self.spaces.directory(space).holders(&block);
        let (own, others): (Vec<_>, Vec<_>) = holders.partition(|(_, holder)| holder.node == me);
        let part = |(block, _)| SpaceBlock { space, block };
        if me != NodeId::FIRST {
            for own in own.into_iter().map(part) {
                self.send_piece(NodeId::FIRST, own)?;
            }
            return Ok(None);
        }
        let waiting: Vec<SpaceBlock> = others.into_iter().map(part).collect();
        self.until_sent(|node| waiting.iter().all(|part| node.pieces.contains_key(part)))?;
        let part = SpaceBlock { space, block };
        let mut bytes = vec![0; self.spaces.bytes(&part) as usize];
        self.put_together(&part, waiting, &mut bytes)?;
        Ok(Some(bytes))
    }

    /// The bytes of a space at all nodes.
    ///
    /// # Errors
    /// As [`Self::brought`].
    pub(super) fn common(&mut self, space: SpaceId) -> Result<Vec<u8>, Interruption> {
        let task = self.machine.task();
        let Some(bytes) = self.brought(space)? else {
            self.until_sent(|node| node.common.contains_key(&task))?;
            let bytes = self.common.remove(&task);
            // What came before belongs to an attempt that has ended.
            self.common.retain(|about, _| *about > task);
            return Ok(bytes.unwrap_or_default());
        };
        let mut message = encode(&Message::Common { task })?;
        message.extend_from_slice(&bytes);
        for rank in 1..self.wire.size() {
            if !self.lost[rank] {
                self.wire.send(rank, message.clone())?;
                self.record.sent_bytes += bytes.len() as u64;
            }
        }
        Ok(bytes)
    }
}

// Conditions that say how the tasks of a workload go on: the first node decides, and tells
// the others before they begin the next one.

impl Node<'_> {
    /// Whether a condition is met after the task that has just ended.
    ///
    /// # Errors
    /// When the tasks begin anew, and what a run refuses.
    pub(super) fn decide(&mut self, space: SpaceId, is_met: &IsMet) -> Result<bool, Interruption> {
        let task = self.machine.task();
        let Some(bytes) = self.brought(space)? else {
            let has_verdict =
                |node: &Self| node.verdicts.get(&task).is_some_and(|of| !of.is_empty());
            self.until(has_verdict)?;
            // What came before belongs to an attempt that has ended.
            self.verdicts.retain(|about, _| *about >= task);
            let of_task = self.verdicts.get_mut(&task);
            return Ok(of_task.and_then(|of| of.pop_front()).unwrap_or(false));
        };
        let is_met = is_met(&bytes);
        for rank in 1..self.size() {
            self.send(NodeId(rank), Message::Verdict { task, is_met })?;
        }
        Ok(is_met)
    }
}

//! The early end of a workload's tasks: the first node decides, and tells the others before
//! they begin the next one.

use super::node::{Interruption, Node};
use crate::cluster::NodeId;
use crate::cluster::protocol::Message;
use crate::cluster::space::{Part, SpaceId};
use crate::workload::cluster::IsMet;

impl Node<'_> {
    /// Whether the task that has just ended is the last one. Nodes that have some of the
    /// space send it unasked, as they know when the task has ended.
    ///
    /// # Errors
    /// When the tasks begin anew, and what a run refuses.
    pub(super) fn is_last(&mut self, space: SpaceId, is_met: &IsMet) -> Result<bool, Interruption> {
        let (me, task) = (self.me(), self.machine.task());
        let block = self.spaces.extent(space).whole();
        let holders = self.spaces.directory(space).holders(&block);
        let (own, others): (Vec<_>, Vec<_>) = holders.partition(|(_, holder)| holder.node == me);
        let part = |(block, _)| Part { space, block };
        if me != NodeId::FIRST {
            for own in own.into_iter().map(part) {
                self.send_piece(NodeId::FIRST, own)?;
            }
            self.until(|node| node.verdicts.contains_key(&task))?;
            let is_last = self.verdicts.remove(&task);
            // What came before belongs to an attempt that has ended.
            self.verdicts.retain(|about, _| *about > task);
            return Ok(is_last.unwrap_or(false));
        }
        let waiting: Vec<Part> = others.into_iter().map(part).collect();
        self.until(|node| waiting.iter().all(|part| node.pieces.contains_key(part)))?;
        let part = Part { space, block };
        let mut bytes = vec![0; self.spaces.bytes(&part) as usize];
        self.put_together(&part, waiting, &mut bytes)?;
        let is_last = is_met(&bytes);
        for rank in 1..self.size() {
            self.send(NodeId(rank), Message::Verdict { task, is_last })?;
        }
        Ok(is_last)
    }
}

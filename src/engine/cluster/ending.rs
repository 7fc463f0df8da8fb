//! The early end of a workload's tasks: the first node decides, and tells the others before
//! they begin the next one.

use super::node::{Interruption, Node};
use crate::cluster::NodeId;
use crate::cluster::protocol::Message;
use crate::cluster::space::{Block, Part, SpaceId};
use crate::workload::cluster::IsMet;

impl Node<'_> {
    /// Whether the task that has just ended is the last one. Nodes that have some of the
    /// space send it unasked, as they know when the task has ended.
    ///
    /// # Errors
    /// When the tasks begin anew, and what a run refuses.
    pub(super) fn is_last(&mut self, space: SpaceId, is_met: &IsMet) -> Result<bool, Interruption> {
        let task = self.machine.task();
        let block = self.spaces.extent(space).whole();
        let holders = self.spaces.directory(space).holders(&block);
        let holders: Vec<(Block, NodeId)> = holders
            .map(|(block, holder)| (block, holder.node))
            .collect();
        let of = |node: NodeId, is: bool| {
            let holders = holders
                .iter()
                .filter(move |(_, holder)| (*holder == node) == is);
            let parts = holders.map(|(block, _)| block.clone());
            parts.map(move |block| Part { space, block })
        };
        let me = self.me();
        if me != NodeId::FIRST {
            for part in of(me, true) {
                self.send_piece(NodeId::FIRST, part)?;
            }
            let told = |node: &Self| node.verdict.filter(|(about, _)| *about == task);
            self.until(|node| told(node).is_some())?;
            return Ok(told(self).is_some_and(|(_, is_last)| is_last));
        }
        let waiting: Vec<Part> = of(me, false).collect();
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

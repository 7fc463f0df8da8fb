//! The early end of a workload's tasks: the first node decides, and tells the others before
//! they begin the next one.

use super::node::{Interruption, Node};
use crate::cluster::NodeId;
use crate::cluster::protocol::Message;
use crate::cluster::space::SpaceId;
use crate::workload::cluster::IsMet;

impl Node<'_> {
    /// Whether the task that has just ended is the last one.
    ///
    /// # Errors
    /// When the tasks begin anew, and what a run refuses.
    pub(super) fn is_last(&mut self, space: SpaceId, is_met: &IsMet) -> Result<bool, Interruption> {
        let task = self.machine.task();
        let Some(bytes) = self.brought(space)? else {
            self.until(|node| node.verdicts.contains_key(&task))?;
            let is_last = self.verdicts.remove(&task);
            // What came before belongs to an attempt that has ended.
            self.verdicts.retain(|about, _| *about > task);
            return Ok(is_last.unwrap_or(false));
        };
        let is_last = is_met(&bytes);
        for rank in 1..self.size() {
            self.send(NodeId(rank), Message::Verdict { task, is_last })?;
        }
        Ok(is_last)
    }
}

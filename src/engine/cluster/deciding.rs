//! Conditions that say how the tasks of a workload go on: the first node decides, and tells
//! the others before they begin the next one.

use super::node::{Interruption, Node};
use crate::workload::cluster::IsMet;
use pdawl_core::cluster::NodeId;
use pdawl_core::cluster::protocol::Message;
use pdawl_core::cluster::space::SpaceId;

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

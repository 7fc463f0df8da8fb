//! What all nodes must know of the data before they begin a task whose blocks depend on it.

use super::encode::encode;
use super::node::{Interruption, Node};
use crate::cluster::NodeId;
use crate::cluster::protocol::Message;
use crate::cluster::space::SpaceId;

impl Node<'_> {
    /// The bytes of a space, which the first node collects and sends to all.
    ///
    /// # Errors
    /// When the tasks begin anew, what a run refuses, and elements that no task has written.
    pub(super) fn common(&mut self, space: SpaceId) -> Result<Vec<u8>, Interruption> {
        let task = self.machine.task();
        if self.me() != NodeId::FIRST {
            self.until(|node| node.common.contains_key(&task))?;
            let bytes = self.common.remove(&task);
            // What came before belongs to an attempt that has ended.
            self.common.retain(|about, _| *about > task);
            return Ok(bytes.unwrap_or_default());
        }
        let bytes = self.whole(space)?;
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

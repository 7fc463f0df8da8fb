//! What nodes are to run next is compared before it begins: no node makes sense of messages
//! about what it does not run.

use super::ClusterError;
use super::node::Node;
use pdawl_core::cluster::NodeId;
use pdawl_core::cluster::protocol::Message;
use pdawl_core::cluster::wire::agreement::Agreement;

/// What a node runs that leaves the cluster.
pub fn the_end() -> Agreement {
    let mut end = Agreement::default();
    end.add("the operation", "none, the end");
    end
}

impl Node<'_> {
    /// Returns when all nodes are to run the same.
    ///
    /// # Errors
    /// [`ClusterError::Unlike`] when one is to run something else, and as a run. All nodes end
    /// then.
    pub fn agree(&mut self, mine: &Agreement) -> Result<(), ClusterError> {
        let compared = match self.me() == NodeId::FIRST {
            true => self.hear(mine),
            false => self.announce(mine.clone()),
        };
        compared.map_err(|error| self.fail(error))
    }

    fn announce(&mut self, what: Agreement) -> Result<(), ClusterError> {
        self.send(NodeId::FIRST, Message::Runs { what })?;
        while !std::mem::take(&mut self.is_agreed) {
            self.turn()?;
        }
        Ok(())
    }

    /// At the first node: compares what all others announce with what it is to run itself.
    fn hear(&mut self, mine: &Agreement) -> Result<(), ClusterError> {
        for rank in 1..self.size() {
            let index = rank as usize;
            while !self.lost[index] && self.announced[index].is_none() {
                self.turn()?;
            }
            let theirs = self.announced[index].take();
            if let Some(difference) = theirs.and_then(|theirs| mine.difference(&theirs)) {
                let node = NodeId(rank);
                return Err(ClusterError::Unlike { difference, node });
            }
        }
        for rank in 1..self.size() {
            if !self.lost[rank as usize] {
                self.send(NodeId(rank), Message::Agreed)?;
            }
        }
        Ok(())
    }
}

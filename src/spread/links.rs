//! When the links between nodes will have carried what was asked for.

use crate::cluster::NodeId;

use super::state::Network;
use crate::time::Nanos;

/// The times at which each node's link will be free again, in either direction. They are
/// expectations: what is asked for first comes first, and nothing else travels.
#[derive(Clone, Debug)]
pub struct Links {
    network: Network,
    receives: Vec<Nanos>,
    sends: Vec<Nanos>,
}

impl Links {
    pub fn new(nodes: usize, network: Network) -> Self {
        Self {
            network,
            receives: vec![0; nodes],
            sends: vec![0; nodes],
        }
    }

    fn seconds_left(&self, at: Nanos, now: Nanos) -> f64 {
        at.saturating_sub(now) as f64 * 1e-9
    }

    /// Seconds until a node has received blocks of these bytes from these holders, beside
    /// what it asked for before; 0 if there are none.
    pub fn arrival(
        &self,
        node: NodeId,
        blocks: impl Iterator<Item = (u64, NodeId)>,
        now: Nanos,
    ) -> f64 {
        let mut bytes = 0;
        let mut free = self.receives[node.index()];
        for (more, holder) in blocks {
            bytes += more;
            free = free.max(self.sends[holder.index()]);
        }
        if bytes == 0 {
            return 0.0;
        }
        self.seconds_left(free, now) + bytes as f64 / self.network.bandwidth
    }

    /// A node asks for blocks of these bytes from these holders.
    pub fn fetch(&mut self, node: NodeId, blocks: impl Iterator<Item = (u64, NodeId)>, now: Nanos) {
        for (bytes, holder) in blocks {
            let takes = (bytes as f64 / self.network.bandwidth * 1e9) as Nanos;
            for free in [
                &mut self.receives[node.index()],
                &mut self.sends[holder.index()],
            ] {
                *free = (*free).max(now) + takes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    /// Four nodes on links of 1000 bytes a second.
    fn links() -> Links {
        let network = Network {
            bandwidth: 1000.0,
            round_trip: 0,
        };
        Links::new(4, network)
    }

    fn block(bytes: u64, holder: u32) -> impl Iterator<Item = (u64, NodeId)> {
        std::iter::once((bytes, NodeId(holder)))
    }

    #[test]
    fn blocks_queue_at_the_node_that_receives_them() {
        let mut links = links();
        assert_eq!(links.arrival(NodeId(0), block(2000, 1), 0), 2.0);
        links.fetch(NodeId(0), block(3000, 1), 0);
        links.fetch(NodeId(0), block(1000, 2), 0);
        assert_eq!(links.arrival(NodeId(0), block(2000, 3), 0), 6.0);
        assert_eq!(links.arrival(NodeId(0), block(2000, 3), 3 * SECOND), 3.0);
        assert_eq!(links.arrival(NodeId(0), block(2000, 3), 9 * SECOND), 2.0);
        assert_eq!(
            links.arrival(NodeId(3), block(2000, 0), 0),
            2.0,
            "sending is free"
        );
    }

    #[test]
    fn blocks_queue_at_the_node_that_sends_them() {
        let mut links = links();
        links.fetch(NodeId(0), block(5000, 3), 0);
        let both = || block(1000, 2).chain(block(1000, 3));
        assert_eq!(links.arrival(NodeId(1), both(), SECOND), 6.0);
        assert_eq!(links.arrival(NodeId(1), block(1000, 2), SECOND), 1.0);
    }

    #[test]
    fn a_link_that_was_free_begins_when_it_is_asked() {
        let mut links = links();
        links.fetch(NodeId(0), block(1000, 1), 4 * SECOND);
        assert_eq!(links.arrival(NodeId(0), block(1000, 2), 4 * SECOND), 2.0);
    }

    #[test]
    fn what_a_node_has_arrives_at_once() {
        let mut links = links();
        links.fetch(NodeId(0), block(1000, 1), 0);
        assert_eq!(links.arrival(NodeId(0), std::iter::empty(), 0), 0.0);
    }
}

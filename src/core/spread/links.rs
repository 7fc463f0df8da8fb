//! When the links between nodes will have carried what was asked for.

use crate::cluster::NodeId;

use super::data::Missing;
use super::state::Network;
use crate::time::Nanos;

/// The times at which each node's link will be free again, in either direction. They are
/// expectations: what is asked for first comes first, and nothing else travels.
#[derive(Clone, Debug)]
pub struct Links {
    network: Network,
    receives: Vec<Nanos>,
    sends: Vec<Nanos>,
    /// The time that the greatest block of all takes.
    longest: Nanos,
}

/// Blocks that a node should know to ask for: what it is given next takes some time to come.
const ON_THEIR_WAY: Nanos = 8;

impl Links {
    pub fn new(nodes: usize, network: Network) -> Self {
        Self {
            network,
            receives: vec![0; nodes],
            sends: vec![0; nodes],
            longest: 0,
        }
    }

    fn seconds_left(&self, at: Nanos, now: Nanos) -> f64 {
        at.saturating_sub(now) as f64 * 1e-9
    }

    /// Seconds until a node has received these blocks, beside what it asked for before; 0 if
    /// there are none.
    pub fn arrival(&self, node: NodeId, blocks: impl Iterator<Item = Missing>, now: Nanos) -> f64 {
        let mut bytes = 0;
        let mut free = self.receives[node.index()];
        for block in blocks {
            bytes += block.bytes;
            let sends = block.holder.map(|holder| self.sends[holder.index()]);
            free = free.max(sends.unwrap_or(0));
        }
        if bytes == 0 {
            return 0.0;
        }
        self.seconds_left(free, now) + bytes as f64 / self.network.bandwidth
    }

    /// Seconds until nodes have got back blocks of these bytes, which a node has in so many
    /// seconds.
    pub fn back(
        &self,
        node: NodeId,
        blocks: impl Iterator<Item = (u64, NodeId)>,
        seconds: f64,
        now: Nanos,
    ) -> f64 {
        let sends = self.seconds_left(self.sends[node.index()], now);
        blocks.fold(seconds, |end, (bytes, to)| {
            let receives = self.seconds_left(self.receives[to.index()], now);
            end.max(sends).max(receives) + bytes as f64 / self.network.bandwidth
        })
    }

    /// A node will send these blocks back.
    pub fn send_back(
        &mut self,
        node: NodeId,
        blocks: impl Iterator<Item = (u64, NodeId)>,
        now: Nanos,
    ) {
        for (bytes, to) in blocks {
            let takes = (bytes as f64 / self.network.bandwidth * 1e9) as Nanos;
            for free in [
                &mut self.sends[node.index()],
                &mut self.receives[to.index()],
            ] {
                *free = (*free).max(now) + takes;
            }
        }
    }

    /// Whether a node receives something, and less than it should know of.
    pub fn has_room(&self, node: NodeId, now: Nanos) -> bool {
        let left = self.receives[node.index()].saturating_sub(now);
        left > 0 && left < ON_THEIR_WAY * self.longest
    }

    /// A node asks for these blocks.
    pub fn fetch(&mut self, node: NodeId, blocks: impl Iterator<Item = Missing>, now: Nanos) {
        for block in blocks {
            let takes = (block.bytes as f64 / self.network.bandwidth * 1e9) as Nanos;
            self.longest = self.longest.max(takes);
            let sends = block.holder.map(|holder| &mut self.sends[holder.index()]);
            for free in sends.into_iter().chain([&mut self.receives[node.index()]]) {
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

    fn block(bytes: u64, holder: u32) -> impl Iterator<Item = Missing> {
        let holder = Some(NodeId(holder));
        std::iter::once(Missing { bytes, holder })
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
    fn what_is_changed_goes_back_when_both_links_are_free() {
        let mut links = links();
        let block = || std::iter::once((1000, NodeId(2)));
        assert_eq!(links.back(NodeId(1), std::iter::empty(), 0.5, 0), 0.5);
        assert_eq!(links.back(NodeId(1), block(), 0.5, 0), 1.5);
        links.fetch(NodeId(2), self::block(3000, 3), 0);
        assert_eq!(links.back(NodeId(1), block(), 0.5, 0), 4.0);
        links.send_back(NodeId(1), block(), 0);
        assert_eq!(links.back(NodeId(1), block(), 0.5, 0), 5.0);
    }

    #[test]
    fn a_link_should_have_some_blocks_to_carry() {
        let mut links = links();
        let node = NodeId(0);
        assert!(!links.has_room(node, 0), "the node lacks nothing");
        for count in 0..ON_THEIR_WAY {
            links.fetch(node, block(1000, 1), 0);
            assert_eq!(links.has_room(node, 0), count + 1 < ON_THEIR_WAY);
        }
        assert!(links.has_room(node, SECOND));
        assert!(!links.has_room(node, 8 * SECOND), "all has come");
    }

    #[test]
    fn what_several_nodes_have_waits_for_none_of_them() {
        let mut links = links();
        links.fetch(NodeId(0), block(5000, 3), 0);
        let copied = Missing {
            bytes: 1000,
            holder: None,
        };
        assert_eq!(links.arrival(NodeId(1), std::iter::once(copied), 0), 1.0);
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

//! Copies of this node's blocks: what many ask for travels along those who have it.
//!
//! Whoever has the block as its own knows who asked before, so it says who sends the next
//! copy: one that can send it soon and has sent little so far. A single block thus spreads as
//! a tree, and many blocks such that each node sends about as much as it gets.

use std::collections::HashMap;

use super::RequestId;
use crate::cluster::NodeId;
use crate::cluster::task::chain::Source;
use crate::spread::Network;
use crate::time::Nanos;

/// A request that another node is to answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Relayed {
    pub to: NodeId,
    pub request: RequestId,
    pub source: Source,
}

/// Who gets copies of a node's blocks in a task. Times are expectations, as only what was
/// asked of this node is known.
pub(super) struct Copies {
    me: NodeId,
    network: Network,
    /// By block: who asked for it, and when it is expected to have it.
    of: HashMap<Source, Vec<(NodeId, Nanos)>>,
    /// When each node's link is expected to be free again, and for how long it has sent.
    sends: HashMap<NodeId, (Nanos, Nanos)>,
    /// What each node was ordered to send.
    relayed: HashMap<NodeId, Vec<Relayed>>,
}

impl Copies {
    pub fn new(me: NodeId, network: Network) -> Self {
        Self {
            me,
            network,
            of: HashMap::new(),
            sends: HashMap::new(),
            relayed: HashMap::new(),
        }
    }

    /// The node that sends a block of so many bytes to one that asks for it.
    ///
    /// Who asks again has lost its copy, and gets it from here: it might otherwise wait for a
    /// node that waits for it.
    pub fn sender(&mut self, wanted: Relayed, bytes: u64, now: Nanos) -> NodeId {
        if self.sends.values().all(|(free, _)| *free <= now) {
            // Nothing is on its way, so it does not matter who has sent what. Who had sent less
            // would otherwise send all of the next blocks.
            self.sends.clear();
        }
        let copies = self.of.entry(wanted.source.clone()).or_default();
        let takes = (bytes as f64 / self.network.bandwidth * 1e9) as Nanos;
        let arrival = now + self.network.round_trip / 2;
        let asked_before = copies.iter().position(|(node, _)| *node == wanted.to);
        let others = copies.iter().filter(|_| asked_before.is_none());
        let others = others.map(|&(node, has)| (node, has.max(arrival)));
        let of = |node: NodeId| self.sends.get(&node).copied().unwrap_or((0, 0));
        let begins = |(node, can): (NodeId, Nanos)| (node, can.max(of(node).0));
        let costs = |&(node, begins): &(NodeId, Nanos)| begins.saturating_add(of(node).1);
        let all = std::iter::once((self.me, now)).chain(others).map(begins);
        // This node is there, and of equal ones the first.
        let (sender, begins) = all.min_by_key(costs).unwrap_or((self.me, now));
        let has = begins + takes;
        let sent = of(sender).1 + takes;
        self.sends.insert(sender, (has, sent));
        match asked_before {
            Some(place) => copies[place].1 = has,
            None => copies.push((wanted.to, has)),
        }
        if sender != self.me {
            self.relayed.entry(sender).or_default().push(wanted);
        }
        sender
    }

    /// A node does not have a block any longer. That it has asked for it stays known.
    pub fn forgotten(&mut self, node: NodeId, source: &Source) {
        let copies = self.of.get_mut(source).into_iter().flatten();
        for (_, has) in copies.filter(|(other, _)| *other == node) {
            *has = Nanos::MAX;
        }
    }

    /// A node is lost. The result is what it was ordered to send, and may not have sent.
    pub fn lost(&mut self, node: NodeId) -> Vec<Relayed> {
        for copies in self.of.values_mut() {
            copies.retain(|(other, _)| *other != node);
        }
        let mut left = self.relayed.remove(&node).unwrap_or_default();
        left.retain(|relayed| relayed.to != node);
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::space::{Block, SpaceBlock, SpaceId};

    const SECOND: Nanos = 1_000_000_000;

    /// Node 0, on links of 1000 bytes a second.
    fn copies() -> Copies {
        let network = Network {
            bandwidth: 1000.0,
            round_trip: 2,
        };
        Copies::new(NodeId(0), network)
    }

    fn wanted(to: u32, row: u64) -> Relayed {
        Relayed {
            to: NodeId(to),
            request: RequestId(row),
            source: Source::before(SpaceBlock {
                space: SpaceId(0),
                block: Block::new(row..row + 1, 0..1),
            }),
        }
    }

    fn senders(copies: &mut Copies, asks: &[(u32, u64)]) -> Vec<u32> {
        let sender = |&(to, row)| copies.sender(wanted(to, row), 1000, 0).0;
        asks.iter().map(sender).collect()
    }

    #[test]
    fn one_block_travels_along_a_tree() {
        let asks: Vec<(u32, u64)> = (1..8).map(|node| (node, 0)).collect();
        let mut copies = copies();
        let senders = senders(&mut copies, &asks);
        let from_first = senders.iter().filter(|&&sender| sender == 0).count();
        assert!((2..=4).contains(&from_first), "{senders:?}");
        let last = copies.of.values().flatten().map(|(_, has)| *has).max();
        // Eight nodes could have it after three steps, and the messages to the senders.
        assert!(last.is_some_and(|last| last < 5 * SECOND), "{last:?}");
    }

    #[test]
    fn of_many_blocks_each_node_sends_its_part() {
        let asks: Vec<(u32, u64)> = (1..5)
            .flat_map(|node| (0..50).map(move |row| (node, row)))
            .collect();
        let mut copies = copies();
        let senders = senders(&mut copies, &asks);
        for node in 0..4 {
            let count = senders.iter().filter(|&&sender| sender == node).count();
            assert!((40..=60).contains(&count), "{node} sends {count}");
        }
    }

    #[test]
    fn who_has_sent_little_before_a_pause_does_not_send_all_after_it() {
        let mut copies = copies();
        // Nodes 1 to 4 have sent for an hour, and this one nothing.
        for node in 1..5 {
            copies
                .sends
                .insert(NodeId(node), (3600 * SECOND, 3600 * SECOND));
        }
        let asks: Vec<(u32, u64)> = (0..50)
            .flat_map(|row| (1..5).map(move |node| (node, row)))
            .collect();
        let later = 4000 * SECOND;
        let sender = |&(to, row): &(u32, u64)| copies.sender(wanted(to, row), 1000, later).0;
        let own = asks.iter().map(sender).filter(|sender| *sender == 0);
        let own = own.count();
        assert!((40..=100).contains(&own), "{own} of 200");
    }

    #[test]
    fn who_asks_again_or_of_a_lost_node_is_served_here() {
        let mut copies = copies();
        let asks = [(1, 0), (2, 0), (3, 0)];
        assert_eq!(senders(&mut copies, &asks), [0, 1, 0]);
        let sender = copies.sender(wanted(4, 0), 1000, SECOND);
        assert_ne!(sender, NodeId(0), "it has sent more than the others");
        copies.sends.insert(NodeId(0), (200 * SECOND, 0));
        let sender = copies.sender(wanted(5, 0), 1000, SECOND);
        assert_eq!(sender, NodeId(3), "nodes 1 and 2 have sent it");
        assert_eq!(copies.sender(wanted(1, 0), 1000, 100 * SECOND), NodeId(0));
        let left = copies.lost(NodeId(3));
        assert!(left.contains(&wanted(5, 0)), "{left:?}");
        assert_eq!(copies.lost(NodeId(3)), []);
        for node in [1, 2, 4, 5] {
            copies.forgotten(NodeId(node), &wanted(node, 0).source);
        }
        assert_eq!(copies.sender(wanted(6, 0), 1000, 100 * SECOND), NodeId(0));
    }
}

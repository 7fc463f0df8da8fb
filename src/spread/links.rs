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

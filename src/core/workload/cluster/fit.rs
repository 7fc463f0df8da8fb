//! How large subtasks should be on the nodes that compute them: so small that all end
//! together, and so large that neither links nor devices wait for what comes with each.

use crate::cluster::info::{DeviceInfo, NodeInfo};
use crate::spread::Network;

/// Blocks for each that is on a device at once, so that all devices end together and the first
/// ones begin soon; and the least, where devices would rather have larger ones.
const ROUNDS: f64 = 64.0;
const LEAST_ROUNDS: f64 = 4.0;

/// Block columns of a factorisation for each node: fewer are left near its end, and nodes
/// without one wait.
const COLUMNS: u64 = 10;

/// Rows and columns of blocks.
const LEAST: u64 = 64;
const MOST: u64 = 2048;

/// What sizes depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    nodes: u64,
    devices: u64,
    /// Subtasks that are on all devices at once.
    slots: u64,
    /// Operations of the device in the time of one byte on its link, the most of all.
    operations: f64,
    /// Bytes that a link between nodes carries until a message is answered.
    answered: f64,
}

impl Fit {
    /// To these nodes on such a network.
    pub fn new(nodes: &[NodeInfo], network: Network) -> Self {
        let devices = || nodes.iter().flat_map(|node| &node.devices);
        let operations = |device: &DeviceInfo| match device.link_bandwidth.is_finite() {
            true => device.flops / device.link_bandwidth,
            false => 0.0,
        };
        Self {
            nodes: nodes.len().max(1) as u64,
            devices: devices().count().max(1) as u64,
            slots: devices()
                .map(|device| u64::from(device.depth))
                .sum::<u64>()
                .max(1),
            operations: devices().map(operations).fold(0.0, f64::max),
            answered: network.bandwidth * network.round_trip as f64 * 1e-9,
        }
    }

    /// Rows and columns of the blocks of a product's result. A subtask copies a row and a
    /// column of blocks to its device.
    pub fn product(&self, rows: u64, columns: u64) -> u64 {
        let side = |count: f64| (rows as f64 * columns as f64 / count).sqrt();
        // 2 n^2 operations and 8 n bytes for each column of the first matrix.
        let copied = 4.0 * self.operations;
        let slots = self.slots as f64;
        let tile = side(ROUNDS * slots)
            .max(copied)
            .min(side(LEAST_ROUNDS * slots));
        (tile as u64).clamp(LEAST, 2 * MOST).min(rows.max(columns))
    }

    /// Rows and columns of the blocks of an image, of which a subtask reads this far beyond.
    pub fn image(&self, rows: u64, columns: u64, reach: u64) -> u64 {
        let blocks = ROUNDS * self.slots as f64;
        let tile = (rows as f64 * columns as f64 / blocks).sqrt() as u64;
        tile.clamp(LEAST, MOST).max(reach).min(rows.max(columns))
    }

    /// Rows and columns of the blocks of a factorisation.
    pub fn factors(&self, size: u64) -> u64 {
        size.div_ceil(COLUMNS * self.nodes)
            .clamp(LEAST, MOST)
            .min(size)
    }

    /// Lines of a subtask of a transform along the rows and the columns of a matrix of so many
    /// lines, each of which has so many bytes: one subtask a device, unless what a node sends
    /// for it takes less time than to ask for it.
    pub fn lines(&self, lines: u64, bytes: u64) -> u64 {
        let sent = bytes as f64 / self.nodes as f64;
        let worth = if self.nodes > 1 {
            self.answered / sent
        } else {
            1.0
        };
        (lines.div_ceil(self.devices))
            .max(worth as u64)
            .clamp(1, lines.max(1))
    }

    /// Bands of a sort.
    pub fn bands(&self) -> u64 {
        4 * self.slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(nodes: usize, link: f64) -> Fit {
        let device = |link_bandwidth, depth| DeviceInfo {
            name: "device".into(),
            flops: 1e12,
            memory_bandwidth: 1e11,
            link_bandwidth,
            depth,
        };
        let node = NodeInfo {
            name: "node".into(),
            devices: vec![device(f64::INFINITY, 1), device(link, 2)],
        };
        let network = Network {
            bandwidth: 1e9,
            round_trip: 10_000,
        };
        Fit::new(&vec![node; nodes], network)
    }

    #[test]
    fn more_nodes_have_smaller_subtasks() {
        let sizes = |fit: Fit| {
            [
                fit.product(32768, 32768),
                fit.image(32768, 32768, 3),
                fit.factors(32768),
                fit.lines(32768, 1 << 18),
                fit.numbers(),
            ]
        };
        let (few, many) = (sizes(fit(4, 1e10)), sizes(fit(64, 1e10)));
        for (few, many) in few.into_iter().zip(many) {
            assert!(many < few && many >= 1, "{many} of {few}");
        }
    }

    impl Fit {
        fn numbers(&self) -> u64 {
            (1 << 20) / self.bands()
        }
    }

    #[test]
    fn subtasks_are_as_large_as_links_want_them() {
        // 500 operations a byte, unless devices would have nothing to do.
        assert_eq!(fit(64, 2e9).product(65536, 65536), 2000);
        assert_eq!(fit(64, 2e7).product(65536, 65536), 2364);
        assert_eq!(fit(256, 2e7).product(32768, 32768), 591);
        // A line has 40 bytes for each node, and an answer takes 10 000 bytes' time.
        assert_eq!(fit(100, 1e10).lines(4000, 4000), 250);
    }

    #[test]
    fn no_size_exceeds_the_whole() {
        for nodes in [0, 1, 1000] {
            let fit = fit(nodes, 1e10);
            for size in [1, 5, 100] {
                let tiles = [
                    fit.product(size, 1),
                    fit.image(1, size, 0),
                    fit.factors(size),
                ];
                let lines = fit.lines(size, 8 * size);
                assert!(
                    tiles
                        .iter()
                        .chain([&lines])
                        .all(|tile| (1..=size).contains(tile))
                );
            }
        }
    }
}

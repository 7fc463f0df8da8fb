//! A space cut into blocks of equal size, smaller at its last row and column, and how large the
//! blocks should be, on one machine and for the subtasks of nodes.

use std::sync::Arc;

use super::{Cholesky, Lone, Product};
use crate::cluster::info::{DeviceInfo, NodeInfo};
use crate::cluster::space::{Block, Extent};
use crate::codelet::{Element, ProductPrecision};
use crate::policy::WINDOW;
use crate::spread::Network;

/// Blocks of a space, numbered by rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiles {
    extent: Extent,
    height: u64,
    width: u64,
}

impl Tiles {
    /// Blocks of this height and width.
    pub fn new(extent: Extent, [height, width]: [u64; 2]) -> Self {
        Self {
            extent,
            height: height.max(1),
            width: width.max(1),
        }
    }

    /// Blocks of a row of blocks.
    pub fn across(&self) -> u64 {
        self.extent.columns.div_ceil(self.width).max(1)
    }

    /// The number of blocks.
    pub fn count(&self) -> u64 {
        let down = self.extent.rows.div_ceil(self.height);
        self.across().saturating_mul(down)
    }

    /// A block.
    pub fn block(&self, number: u64) -> Block {
        let cut = |index: u64, size: u64, end: u64| {
            let begin = (index * size).min(end);
            begin..(begin + size).min(end)
        };
        Block::new(
            cut(number / self.across(), self.height, self.extent.rows),
            cut(number % self.across(), self.width, self.extent.columns),
        )
    }

    /// The numbers of all blocks in nested squares: of each two by two blocks, of each two by
    /// two of these, and so on. Blocks whose places here are near lie in few rows and columns.
    pub fn nested(&self) -> Arc<[u64]> {
        let across = self.across();
        let spread = |number: u64| (0..32).map(move |bit| (number >> bit & 1) << (2 * bit));
        let interleaved = |number: &u64| -> u64 {
            let (row, column) = (number / across, number % across);
            spread(row).map(|bit| bit << 1).chain(spread(column)).sum()
        };
        let mut all: Vec<u64> = (0..self.count()).collect();
        all.sort_by_cached_key(interleaved);
        all.into()
    }

    /// All blocks, in their order.
    pub fn all(&self) -> impl Iterator<Item = Block> + use<> {
        let tiles = *self;
        (0..tiles.count()).map(move |number| tiles.block(number))
    }
}

/// The greatest tile that is chosen. A GPU's kernel is at its full rate from 2048 rows on,
/// and larger tiles only make the first copy and the last task longer.
const GREATEST: u64 = 4096;

/// The greatest tile of a factorisation, in which the tasks on the diagonal wait for one
/// another and occupy a device badly.
const GREATEST_FACTOR: u64 = 1024;

/// The least tile that is chosen to have more tasks: kernels are slow on smaller ones.
const LEAST: u64 = 256;

/// The least tile that is chosen for little memory.
const LEAST_IN_MEMORY: u64 = 16;

/// Tasks of each device, at least: its last one then ends at most about 1 % late.
const TASKS: u64 = 128;

/// Tiles of a task: factors and results.
const FACTORS: u64 = 2;
const RESULTS: u64 = 1;

/// The tiles of a product: their length is the greatest power of two, from 256 to 4096, that
/// leaves each device 128 tasks. If the tiles of the 16 tasks of a device's window do not fit the
/// least of the devices' own memories, it is smaller. A matrix that is smaller than a tile is one
/// tile.
pub(super) fn of_product(of: &Product, lone: Lone) -> u64 {
    let longest = of.rows.max(of.columns).max(of.depth);
    chosen(GREATEST, of.precision, lone, |tile| of.tasks(tile)).min(longest)
}

/// Those of a factorisation, up to 1024.
pub(super) fn of_factorisation(of: &Cholesky, lone: Lone) -> u64 {
    let precision = of.precision.into();
    chosen(GREATEST_FACTOR, precision, lone, |tile| of.tasks(tile)).min(of.size)
}

fn chosen(
    greatest: u64,
    precision: ProductPrecision,
    lone: Lone,
    tasks: impl Fn(u64) -> u64,
) -> u64 {
    let numbers =
        FACTORS * precision.factors().bytes() + RESULTS * Element::from(precision.sums()).bytes();
    let fits = |tile: u64| {
        let window = tile * tile * numbers * WINDOW as u64;
        lone.memory.is_none_or(|memory| window <= memory)
    };
    let many = |tile: u64| tasks(tile) >= TASKS * lone.devices.max(1) as u64;
    let mut tile = greatest;
    while (tile > LEAST && !many(tile)) || (tile > LEAST_IN_MEMORY && !fits(tile)) {
        tile /= 2;
    }
    tile
}

// How large subtasks should be on the nodes that compute them: so small that all end
// together, and so large that neither links nor devices wait for what comes with each.

/// Blocks for each that is on a device at once, so that all devices end together and the first
/// ones begin soon; and the least, where devices would rather have larger ones.
const ROUNDS: f64 = 64.0;
const LEAST_ROUNDS: f64 = 4.0;

/// Block columns of a factorisation for each node: fewer are left near its end, and nodes
/// without one wait.
const COLUMNS: u64 = 10;

/// The first node's driver is busy with messages for this part of a run, at most, and for this part
/// of a round trip with those of a subtask.
const DRIVING: f64 = 0.5;
const DRIVEN: f64 = 0.2;

/// Rows and columns of blocks.
const LEAST_SIDE: u64 = 64;
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
    /// Operations of all devices while the driver of the first node handles a subtask.
    driven: f64,
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
            driven: match nodes.len() {
                0 | 1 => 0.0,
                _ => {
                    let flops = devices().map(|device| device.flops).sum::<f64>();
                    DRIVEN * network.round_trip as f64 * 1e-9 * flops
                }
            },
        }
    }

    /// Subtasks of so many operations together that the first node's driver can handle, at least
    /// one for each node.
    fn most(&self, flops: f64) -> f64 {
        match self.driven > 0.0 && self.driven.is_finite() {
            true => (DRIVING * flops / self.driven).max(self.nodes as f64),
            false => f64::INFINITY,
        }
    }

    /// Whether there is one node only.
    pub(super) fn is_single(&self) -> bool {
        self.nodes == 1
    }

    /// Rows and columns of the blocks of a product's result, which takes so many operations. A
    /// subtask copies a row and a column of blocks to its device.
    pub fn product(&self, rows: u64, columns: u64, flops: f64) -> u64 {
        let side = |count: f64| (rows as f64 * columns as f64 / count).sqrt();
        // 2 n^2 operations and 8 n bytes for each column of the first matrix.
        let copied = 4.0 * self.operations;
        let slots = self.slots as f64;
        let tile = side((ROUNDS * slots).min(self.most(flops)))
            .max(copied)
            .min(side(LEAST_ROUNDS * slots));
        (tile as u64)
            .clamp(LEAST_SIDE, 2 * MOST)
            .min(rows.max(columns))
    }

    /// Rows and columns of the blocks of an image, of which a subtask reads this far beyond, and all
    /// take so many operations.
    pub fn image(&self, rows: u64, columns: u64, reach: u64, flops: f64) -> u64 {
        let blocks = (ROUNDS * self.slots as f64).min(self.most(flops));
        let tile = (rows as f64 * columns as f64 / blocks).sqrt() as u64;
        // Each node has as many rows of blocks.
        let band = rows.div_ceil(self.nodes);
        let tile = match tile.max(1) < band {
            true => band.div_ceil(band.div_ceil(tile.max(1))),
            false => tile,
        };
        tile.clamp(LEAST_SIDE, MOST)
            .max(reach)
            .min(rows.max(columns))
    }

    /// Rows and columns of the blocks of a factorisation, which takes so many operations. With `n`
    /// block columns it has `n^3 / 3` subtasks.
    pub fn factors(&self, size: u64, flops: f64) -> u64 {
        let most = (3.0 * self.most(flops)).cbrt().max(1.0);
        size.div_ceil((COLUMNS * self.nodes).min(most as u64))
            .clamp(LEAST_SIDE, MOST)
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
    use std::sync::Arc;

    use super::*;
    use crate::codelet::Precision;
    use crate::workload::cluster::Fill;

    #[test]
    fn nested_blocks_are_all_and_the_first_ones_are_a_square() {
        let extent = Extent {
            rows: 70,
            columns: 50,
            element: 4,
        };
        let tiles = Tiles::new(extent, [10, 10]);
        let nested = tiles.nested();
        let mut all = nested.to_vec();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..35));
        let first: Vec<Block> = nested[..16].iter().map(|&n| tiles.block(n)).collect();
        assert!(
            first
                .iter()
                .all(|block| block.rows.end <= 40 && block.columns.end <= 40)
        );
    }

    fn unused() -> Fill {
        Arc::new(|_, _| panic!("nothing is made"))
    }

    fn square(n: u64, precision: Precision) -> Product {
        Product {
            rows: n,
            columns: n,
            depth: n,
            precision: precision.into(),
            a: unused(),
            b: unused(),
        }
    }

    fn on(devices: usize, memory: Option<u64>) -> Lone {
        Lone {
            devices,
            memory,
            is_pool: false,
        }
    }

    #[test]
    fn tiles_are_large_and_tasks_many() {
        let chosen =
            |n, devices, memory| of_product(&square(n, Precision::F32), on(devices, memory));
        let gib = Some(1 << 30);
        assert_eq!(chosen(24576, 2, Some(2 << 30)), 2048);
        assert_eq!(chosen(24576, 2, None), 2048);
        assert_eq!(chosen(49152, 3, Some(100 << 30)), 4096);
        assert_eq!(chosen(49152, 3, gib), 2048);
        assert_eq!(chosen(8192, 2, gib), 1024);
        // 16 tasks of three tiles in 1 MiB.
        assert_eq!(chosen(8192, 2, Some(1 << 20)), 64);
        assert_eq!(chosen(8192, 2, Some(1)), 16);
        assert_eq!(chosen(1000, 2, gib), 256);
        assert_eq!((chosen(100, 2, gib), chosen(1, 2, gib)), (100, 1));
    }

    #[test]
    fn doubles_and_factorisations_have_smaller_tiles() {
        let of = square(24576, Precision::F64);
        assert_eq!(of_product(&of, on(2, Some(1 << 30))), 1024);
        let of = Cholesky {
            size: 49152,
            precision: Precision::F32,
            matrix: unused(),
        };
        assert_eq!(of_factorisation(&of, on(2, None)), 1024);
    }

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
            memory: 1 << 34,
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
                fit.product(32768, 32768, 1e15),
                fit.image(32768, 32768, 3, 1e15),
                fit.factors(32768, 1e15),
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
        assert_eq!(fit(64, 2e9).product(65536, 65536, 1e15), 2000);
        assert_eq!(fit(64, 2e7).product(65536, 65536, 1e15), 2364);
        assert_eq!(fit(256, 2e7).product(32768, 32768, 1e15), 591);
        // A line has 40 bytes for each node, and an answer takes 10 000 bytes' time.
        assert_eq!(fit(100, 1e10).lines(4000, 4000), 250);
    }

    #[test]
    fn subtasks_are_no_more_than_the_first_node_can_drive() {
        // 64 nodes do 2.56e8 operations in 2 us. Half of 5.12e11 are 1000 subtasks.
        let fit = fit(64, 1e10);
        assert_eq!(fit.image(32768, 32768, 3, 5.12e11), 1036);
        assert_eq!(fit.factors(16384, 5.12e11), 16384_u64.div_ceil(14));
        // Each node has one, however short they are.
        assert_eq!(fit.image(8192, 8192, 3, 1.0), 1024);
    }

    #[test]
    fn no_size_exceeds_the_whole() {
        for nodes in [0, 1, 1000] {
            let fit = fit(nodes, 1e10);
            for size in [1, 5, 100] {
                let tiles = [
                    fit.product(size, 1, 1e6),
                    fit.image(1, size, 0, 1e6),
                    fit.factors(size, 1e6),
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

//! The tasks that are simulated: what they read, write and cost.

use pdawl::cluster::NodeId;
use pdawl::cluster::space::{Block, Extent, SpaceBlock, SpaceId, Spaces};
use pdawl::cluster::task::Task;
use pdawl::codelet::Cost;

/// A matrix in square blocks, placed by `place`.
pub fn matrix(
    spaces: &mut Spaces,
    (rows, columns, element): (u64, u64, u64),
    block: u64,
    mut place: impl FnMut(u64, u64) -> NodeId,
) -> SpaceId {
    let extent = Extent {
        rows,
        columns,
        element,
    };
    let mut placement = Vec::new();
    for row in 0..rows.div_ceil(block) {
        for column in 0..columns.div_ceil(block) {
            placement.push((cell(row, column, block, &extent), place(row, column)));
        }
    }
    spaces.add(extent, placement)
}

fn cell(row: u64, column: u64, block: u64, extent: &Extent) -> Block {
    let range = |number: u64, most: u64| number * block..((number + 1) * block).min(most);
    Block::new(range(row, extent.rows), range(column, extent.columns))
}

/// A filter over an image: a subtask is a block of it, and reads a border around it.
pub struct Convolution {
    pub image: (SpaceId, Extent),
    pub result: SpaceId,
    pub block: u64,
    pub filter: u64,
}

impl Convolution {
    fn across(&self) -> u64 {
        self.image.1.columns.div_ceil(self.block)
    }

    fn block(&self, subtask: u64) -> Block {
        let (row, column) = (subtask / self.across(), subtask % self.across());
        cell(row, column, self.block, &self.image.1)
    }
}

impl Task for Convolution {
    fn name(&self) -> &str {
        "convolution"
    }

    fn count(&self) -> u64 {
        self.across() * self.image.1.rows.div_ceil(self.block)
    }

    fn reads(&self, subtask: u64) -> Vec<SpaceBlock> {
        let block = self.block(subtask);
        let (space, extent) = self.image;
        let half = self.filter / 2;
        let wide = |range: std::ops::Range<u64>, most: u64| {
            range.start.saturating_sub(half)..(range.end + half).min(most)
        };
        let block = Block::new(
            wide(block.rows, extent.rows),
            wide(block.columns, extent.columns),
        );
        vec![SpaceBlock { space, block }]
    }

    fn writes(&self, subtask: u64) -> Vec<SpaceBlock> {
        let (space, block) = (self.result, self.block(subtask));
        vec![SpaceBlock { space, block }]
    }

    fn cost(&self, subtask: u64) -> Cost {
        let block = self.block(subtask);
        let channels = self.image.1.element;
        let values = (block.elements() * channels) as f64;
        Cost {
            flops: 2.0 * (self.filter * self.filter) as f64 * values,
            bytes: 2.0 * values,
        }
    }
}

/// A product of square matrices: a subtask is a block of the result.
pub struct Product {
    pub spaces: [SpaceId; 3],
    pub side: u64,
    pub block: u64,
}

impl Product {
    fn place(&self, subtask: u64) -> (u64, u64) {
        let across = self.side / self.block;
        (subtask / across, subtask % across)
    }

    fn cell(&self, space: usize, row: u64, column: u64) -> SpaceBlock {
        let range = |number: u64| number * self.block..(number + 1) * self.block;
        SpaceBlock {
            space: self.spaces[space],
            block: Block::new(range(row), range(column)),
        }
    }
}

impl Task for Product {
    fn name(&self) -> &str {
        "product"
    }

    fn count(&self) -> u64 {
        (self.side / self.block).pow(2)
    }

    fn reads(&self, subtask: u64) -> Vec<SpaceBlock> {
        let (row, column) = self.place(subtask);
        let blocks = 0..self.side / self.block;
        let left = blocks.clone().map(|k| self.cell(0, row, k));
        left.chain(blocks.map(|k| self.cell(1, k, column)))
            .collect()
    }

    fn writes(&self, subtask: u64) -> Vec<SpaceBlock> {
        let (row, column) = self.place(subtask);
        vec![self.cell(2, row, column)]
    }

    fn cost(&self, _: u64) -> Cost {
        let (side, block) = (self.side as f64, self.block as f64);
        Cost {
            flops: 2.0 * block * block * side,
            bytes: 4.0 * (2.0 * block * side + block * block),
        }
    }
}

/// Subtasks of equal cost that read and write little, of what each node has equally much.
pub struct Equal {
    pub count: u64,
    pub flops: f64,
    pub spaces: [SpaceId; 2],
}

impl Equal {
    pub fn spaces(count: u64, nodes: u64) -> (Spaces, [SpaceId; 2]) {
        let mut spaces = Spaces::default();
        let extent = Extent {
            rows: 1,
            columns: count,
            element: 4096,
        };
        let part = |n: u64| Block::new(0..1, count * n / nodes..count * (n + 1) / nodes);
        let placement = |_| (0..nodes).map(|n| (part(n), NodeId(n as u32)));
        let ids = [0, 1].map(|space| spaces.add(extent, placement(space)));
        (spaces, ids)
    }

    fn part(&self, space: usize, subtask: u64) -> Vec<SpaceBlock> {
        let (space, block) = (self.spaces[space], Block::new(0..1, subtask..subtask + 1));
        vec![SpaceBlock { space, block }]
    }
}

impl Task for Equal {
    fn name(&self) -> &str {
        "equal"
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn reads(&self, subtask: u64) -> Vec<SpaceBlock> {
        self.part(0, subtask)
    }

    fn writes(&self, subtask: u64) -> Vec<SpaceBlock> {
        self.part(1, subtask)
    }

    fn cost(&self, _: u64) -> Cost {
        Cost {
            flops: self.flops,
            bytes: 8192.0,
        }
    }
}

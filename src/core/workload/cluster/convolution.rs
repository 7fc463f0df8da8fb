//! The convolution of an image with a square filter (Unicorn, section V).

use std::sync::Arc;

use super::tiles::Tiles;
use super::{Check, ClusterWorkload, Contents, Fill, NewSpace, Placement};
use crate::cluster::space::{Block, Extent, SpaceBlock, SpaceId};
use crate::cluster::task::{Computed, SubtaskLaunch, SubtaskValue, Task};
use crate::codelet::convolution::{Convolution, codelet};
use crate::codelet::{Codelet, Cost};

/// An image of singles, `channels` a pixel.
#[derive(Clone)]
pub struct ConvolutionWorkload {
    pub rows: u64,
    pub columns: u64,
    pub channels: u32,
    /// Rows of the filter, an odd number.
    pub size: u32,
    /// Rows and pixels a row of a subtask's block.
    pub tile: u64,
    pub placement: Placement,
    /// The pixels and the filter.
    pub image: Fill,
    pub filter: Fill,
}

const IMAGE: usize = 0;
const FILTER: usize = 1;
const RESULT: usize = 2;

impl ConvolutionWorkload {
    fn extent(&self) -> Extent {
        Extent {
            rows: self.rows,
            columns: self.columns,
            element: 4 * u64::from(self.channels),
        }
    }

    pub(super) fn filter_extent(&self) -> Extent {
        let size = u64::from(self.size);
        Extent {
            rows: size,
            columns: size,
            element: 4,
        }
    }

    pub(super) fn halo(&self, block: &Block) -> Block {
        let radius = u64::from(self.size / 2);
        let widen = |range: &std::ops::Range<u64>, end: u64| {
            range.start.saturating_sub(radius)..(range.end + radius).min(end)
        };
        Block::new(
            widen(&block.rows, self.rows),
            widen(&block.columns, self.columns),
        )
    }
}

impl ClusterWorkload for ConvolutionWorkload {
    fn name(&self) -> &'static str {
        "convolution"
    }

    fn spaces(&self) -> Vec<NewSpace> {
        vec![
            NewSpace {
                extent: self.extent(),
                contents: Some(Contents::placed(self.placement, Arc::clone(&self.image))),
            },
            NewSpace {
                extent: self.filter_extent(),
                contents: Some(Contents::placed(
                    Placement::Central,
                    Arc::clone(&self.filter),
                )),
            },
            NewSpace {
                extent: self.extent(),
                contents: None,
            },
        ]
    }

    fn tasks(&self) -> u64 {
        1
    }

    fn task(&self, _number: u64, spaces: &[SpaceId]) -> Arc<dyn Computed> {
        Arc::new(ConvolutionTask {
            tiles: Tiles::new(self.extent(), [self.tile, self.tile]),
            codelet: Arc::new(codelet(self.size, self.channels)),
            spaces: [spaces[IMAGE], spaces[FILTER], spaces[RESULT]],
            workload: self.clone(),
        })
    }

    fn result(&self) -> usize {
        RESULT
    }

    fn check(&self) -> Check<'_> {
        Check::Blocks(Box::new(|block, bytes, seed| {
            self.compare(block, bytes, seed)
        }))
    }
}

struct ConvolutionTask {
    workload: ConvolutionWorkload,
    tiles: Tiles,
    codelet: Arc<Codelet>,
    spaces: [SpaceId; 3],
}

impl ConvolutionTask {
    fn shape(&self, subtask: u64) -> Convolution {
        let block = self.tiles.block(subtask);
        let around = self.workload.halo(&block);
        Convolution {
            rows: block.height() as u32,
            columns: block.width() as u32,
            in_rows: around.height() as u32,
            in_columns: around.width() as u32,
            above: (block.rows.start - around.rows.start) as u32,
            left: (block.columns.start - around.columns.start) as u32,
            size: self.workload.size,
            channels: self.workload.channels,
        }
    }
}

impl Task for ConvolutionTask {
    fn name(&self) -> &str {
        "convolution"
    }

    fn count(&self) -> u64 {
        self.tiles.count()
    }

    fn reads(&self, subtask: u64) -> Vec<SpaceBlock> {
        let block = self.workload.halo(&self.tiles.block(subtask));
        let filter = self.workload.filter_extent().whole();
        vec![
            SpaceBlock {
                space: self.spaces[IMAGE],
                block,
            },
            SpaceBlock {
                space: self.spaces[FILTER],
                block: filter,
            },
        ]
    }

    fn writes(&self, subtask: u64) -> Vec<SpaceBlock> {
        vec![SpaceBlock {
            space: self.spaces[RESULT],
            block: self.tiles.block(subtask),
        }]
    }

    fn cost(&self, subtask: u64) -> Cost {
        self.shape(subtask).cost()
    }
}

impl Computed for ConvolutionTask {
    fn launch(&self, subtask: u64) -> SubtaskLaunch {
        let shape = self.shape(subtask);
        SubtaskLaunch {
            codelet: Arc::clone(&self.codelet),
            units: 0..shape.units(),
            values: (SubtaskValue::place(0, 4).into_iter())
                .chain(SubtaskValue::place(2, 4))
                .chain(shape.sizes().map(SubtaskValue::from))
                .collect(),
        }
    }
}

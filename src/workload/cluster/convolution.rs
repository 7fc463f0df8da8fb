//! The convolution of an image with a square filter (Unicorn, section V).

use std::sync::Arc;

use super::samples::{positions, single};
use super::tiles::Tiles;
use super::{Check, ClusterWorkload, Contents, Fill, NewSpace, Placement};
use crate::cluster::space::{Block, Extent, SpaceBlock, SpaceId};
use crate::cluster::task::{Computed, SubtaskLaunch, SubtaskValue, Task};
use crate::codelet::convolution::{Convolution, codelet};
use crate::codelet::{Codelet, Cost, Precision};
use crate::verify::{Checked, Rounding, Sum, numbers};

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

    fn filter_extent(&self) -> Extent {
        let size = u64::from(self.size);
        Extent {
            rows: size,
            columns: size,
            element: 4,
        }
    }

    fn halo(&self, block: &Block) -> Block {
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

/// Numbers that are compared because they are infinite or none where no given number says
/// so, or the reverse. One that is wrong is enough.
const ODD: usize = 1024;

impl ConvolutionWorkload {
    /// Compares samples of a block, and all numbers that are not finite where they should be,
    /// or the reverse.
    fn compare(&self, block: &Block, bytes: &[u8], seed: u64) -> Checked {
        let channels = u64::from(self.channels);
        let again = |of: &Fill, part: &Block, channels: u64| {
            let mut bytes = vec![0; 4 * (part.elements() * channels) as usize];
            Contents::again(of, part, &mut bytes);
            numbers(&bytes, Precision::F32)
        };
        let given = Given {
            filter: again(&self.filter, &self.filter_extent().whole(), 1),
            around: self.halo(block),
            image: again(&self.image, &self.halo(block), channels),
            size: u64::from(self.size),
            channels,
        };
        let odd = given.odd(block, &numbers(bytes, Precision::F32));
        let mut checked = Checked::default();
        for [row, column] in positions(block, seed).into_iter().chain(odd) {
            for channel in 0..channels {
                let found = single(block, bytes, [row, column], channels, channel);
                checked.error(given.error([row, column, channel], found.into()));
            }
        }
        checked
    }
}

/// The filter, and the pixels around a block.
struct Given {
    filter: Vec<f64>,
    around: Block,
    image: Vec<f64>,
    size: u64,
    channels: u64,
}

impl Given {
    /// A number of the image, which has it around the block.
    fn number(&self, row: u64, column: u64, channel: u64) -> f64 {
        let pixel = (row - self.around.rows.start) * self.around.width() + column
            - self.around.columns.start;
        self.image[(pixel * self.channels + channel) as usize]
    }

    /// The error of a number of the result, as a multiple of what is allowed. Weights beyond
    /// the image count with zeros there or not at all: that is the same, unless they are
    /// infinite or none.
    fn error(&self, [row, column, channel]: [u64; 3], found: f64) -> f64 {
        let radius = self.size / 2;
        let rounding = Rounding::from(Precision::F32);
        let (mut sum, mut with_zeros) = (Sum::default(), Sum::default());
        for (place, weight) in (0..).zip(&self.filter) {
            // By how much `radius` the place is ahead.
            let (y, x) = (row + place / self.size, column + place % self.size);
            let inside = y.checked_sub(radius).zip(x.checked_sub(radius));
            let inside = inside
                .filter(|(y, x)| self.around.rows.contains(y) && self.around.columns.contains(x));
            let value = inside.map_or(0.0, |(y, x)| self.number(y, x, channel));
            with_zeros.add(*weight, value);
            if inside.is_some() {
                sum.add(*weight, value);
            }
        }
        (sum.error(found, rounding)).min(with_zeros.error(found, rounding))
    }

    /// The pixels of a block that are finite although one of their terms is not, or the
    /// reverse.
    fn odd(&self, block: &Block, found: &[f64]) -> Vec<[u64; 2]> {
        let has_odd_weight = self.filter.iter().any(|weight| !weight.is_finite());
        let width = (self.around.width() * self.channels) as usize;
        // By row around the block: whether a pixel near a column is not finite.
        let mut near = vec![false; (self.around.height() * block.width()) as usize];
        let of_rows = self.image.chunks_exact(width.max(1));
        for (image, near) in of_rows.zip(near.chunks_exact_mut(block.width() as usize)) {
            let others = image
                .iter()
                .enumerate()
                .filter(|(_, value)| !value.is_finite());
            for (place, _) in others {
                let column = self.around.columns.start + place as u64 / self.channels;
                let reach = reach(column, self.size / 2, &block.columns);
                near[reach].fill(true);
            }
        }
        let mut is_other = vec![has_odd_weight; block.elements() as usize];
        let of_rows = self
            .around
            .rows
            .clone()
            .zip(near.chunks_exact(block.width() as usize));
        for (row, near) in of_rows.filter(|(_, near)| near.contains(&true)) {
            for to in reach(row, self.size / 2, &block.rows) {
                let to = &mut is_other[to * near.len()..(to + 1) * near.len()];
                to.iter_mut().zip(near).for_each(|(to, near)| *to |= near);
            }
        }
        let (first, width) = ([block.rows.start, block.columns.start], block.width());
        let pixels = found.chunks_exact(self.channels as usize);
        (0..)
            .zip(pixels.zip(is_other))
            .filter(|(_, (pixel, is_other))| {
                let is_finite = pixel.iter().all(|value| value.is_finite());
                is_finite == *is_other
            })
            .map(|(place, _)| [first[0] + place / width, first[1] + place % width])
            .take(ODD)
            .collect()
    }
}

/// The places of a range that are at most `radius` from a number, from the range's begin.
fn reach(number: u64, radius: u64, range: &std::ops::Range<u64>) -> std::ops::Range<usize> {
    let place = |number: u64| (number.clamp(range.start, range.end) - range.start) as usize;
    place(number.saturating_sub(radius))..place(number + radius + 1)
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
